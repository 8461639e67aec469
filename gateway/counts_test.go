package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"wmco/gateway/places"
	"wmco/gateway/signatures"
)

// readFamilies reads the numbers as windows_exporter does (its collector textfile).
func readFamilies(t *testing.T, data []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(data)))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return families
}

func readCounts(t *testing.T, data []byte) map[string]float64 {
	t.Helper()
	numbers := map[string]float64{}
	for name, f := range readFamilies(t, data) {
		if f.GetType() != dto.MetricType_COUNTER || f.GetHelp() == "" {
			t.Errorf("%s: %v", name, f)
		}
		for _, m := range f.GetMetric() {
			key := strings.TrimPrefix(name, "wmco_image_gateway_")
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			numbers[key] = m.GetCounter().GetValue()
		}
	}
	return numbers
}

// TestRequestsAreCounted by place and result, with bytes and what was refused.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	i := newImage("a")
	mirror, source := newStore(), newStore().addImage("team/app", i).addImage("team/signed", i).addImage("team/cut", i)
	table := mirrored(false, []string{"a.io/m"}, nil)
	table.Denied = []string{"quay.io/team/blocked"}
	table.Policies = []places.Policy{{Scope: "quay.io/team/signed", Objects: []string{"ClusterImagePolicy/a"}, Requirements: []places.Requirement{{}}}}
	f := newFixture(t, network{"a.io": mirror, "quay.io": source}, table)
	f.signed = func(signatures.Question) (signatures.Answer, error) { return signatures.Answer{}, nil }
	f.ask(http.MethodGet, "team/app/manifests/"+i.digest())
	f.ask(http.MethodGet, "team/app/blobs/"+i.layerDigest())
	f.ask(http.MethodHead, "team/app/blobs/"+i.layerDigest())
	f.ask(http.MethodGet, "team/blocked/manifests/v1")
	f.ask(http.MethodGet, "team/signed/manifests/"+i.digest())
	f.ask(http.MethodGet, "team/other/manifests/v1")
	mirror.status, source.status = 500, 503
	f.ask(http.MethodGet, "team/app/manifests/"+i.digest())
	f.WriteCounts()
	want := map[string]float64{
		"requests_total a.io missing": 4, "requests_total a.io failed": 1, "requests_total quay.io served": 4, "requests_total quay.io missing": 2, "requests_total quay.io failed": 1,
		"bytes_total quay.io":                 float64(len(i.manifest) + len(i.layer)),
		"refused_total quay.io configuration": 1, "refused_total quay.io policy": 1, "refused_total quay.io places": 1,
	}
	if diff := cmp.Diff(want, readCounts(t, f.counts)); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, f.counts)
	}
	checkRecorded(t, readFamilies(t, f.counts))
}

// recorded has the metrics with their labels. internal/verify/monitoring and internal/verify/prometheus hold the alerts to it.
const recorded = "../internal/verify/monitoring/testdata/image_gateway.json"

func checkRecorded(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	var want map[string][]string
	data, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, f := range families {
		for _, l := range f.GetMetric()[0].GetLabel() {
			got[name] = append(got[name], l.GetName())
		}
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what the gateway serves (-recorded +served):\n%s", recorded, diff)
	}
}

// TestCountsAreWrittenWhenTheyChange, and again after an error.
func TestCountsAreWrittenWhenTheyChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, network{"quay.io": newStore()}, mirrored(false, nil, nil))
	f.counting = errors.New("it is being read")
	f.WriteCounts()
	f.counting = nil
	f.WriteCounts()
	first := string(f.counts)
	f.counts = nil
	f.WriteCounts()
	if first == "" || f.counts != nil {
		t.Errorf("first %q, then %q", first, f.counts)
	}
	f.ask(http.MethodGet, "team/app/manifests/v1")
	f.WriteCounts()
	if !strings.Contains(string(f.counts), `{place="quay.io",result="missing"} 1`) {
		t.Errorf("%s", f.counts)
	}
}

// TestFewRegistriesAreCountedByName: a table for all registries has no bound of its own.
func TestFewRegistriesAreCountedByName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, network{}, places.Table{Routed: []string{places.All}})
	for n := range 400 {
		f.askFor(http.MethodGet, "app/manifests/v1", fmt.Sprintf("r%d.io", n))
	}
	f.WriteCounts()
	numbers := readCounts(t, f.counts)
	if len(numbers) > 600 || numbers["requests_total other failed"] != 400-256 || numbers["refused_total other places"] != 400-256 {
		t.Errorf("%d numbers, others %v and %v", len(numbers), numbers["requests_total other failed"], numbers["refused_total other places"])
	}
}
