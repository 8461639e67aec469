package controller

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/rollout/plan"
)

// freeAddress returns an address without a listener. A process that is started at the same time would keep the port for a moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate puts a new certificate into the folder of the metrics, as a mounted Secret changes.
func (r *running) certificate(name string) {
	r.t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for file, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(r.certificates, file), data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// scrape asks for metrics with a token, none if it is empty. It waits until the operator listens.
func (r *running) scrape(token string) (int, string) {
	r.t.Helper()
	http1 := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is checked in a test of its own
	var status int
	var body []byte
	if err := r.eventually("metrics", func() bool {
		request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://"+r.metrics+"/metrics", nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http1.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		status = response.StatusCode
		body, err = io.ReadAll(response.Body)
		return err == nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return status, string(body)
}

// token returns the token of a new service account.
func (r *running) token(name string) string {
	r.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: name}}
	if err := r.Create(r.t.Context(), account); err != nil {
		r.t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := r.SubResource("token").Create(r.t.Context(), account, request); err != nil {
		r.t.Fatal(err)
	}
	return request.Status.Token
}

// reader returns the token of a service account that may read metrics, as prometheus-k8s may in OpenShift.
func (r *running) reader(name string) string {
	r.t.Helper()
	token := r.token(name)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: gather.OperatorNamespace, Name: name}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := r.Create(r.t.Context(), o); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.eventually("the permission to read metrics", func() bool {
		status, _ := r.scrape(token)
		return status == http.StatusOK
	}); err != nil {
		r.t.Fatal(err)
	}
	return token
}

func checkProbes(t *testing.T, r *running) {
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusNotFound} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.health+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d", path, response.StatusCode)
		}
	}
}

func checkMetricsAccess(t *testing.T, r *running) {
	foreign := r.token("nobody")
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"no token": {"", http.StatusUnauthorized}, "a wrong token": {"wrong", http.StatusUnauthorized},
		"a token with another signature": {foreign + "x", http.StatusUnauthorized}, "a service account without the permission": {foreign, http.StatusForbidden},
	} {
		for range 2 { // the second verdict is remembered
			if status, body := r.scrape(tt.token); status != tt.want || strings.Contains(body, "wmco_") {
				t.Errorf("%s: status %d: %s", name, status, body)
			}
		}
	}
	r.reader("prometheus")
}

// handshake returns what a client negotiates that speaks one version of TLS alone.
func (r *running) handshake(version uint16, suites ...uint16) (tls.ConnectionState, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", r.metrics,
		&tls.Config{MinVersion: version, MaxVersion: version, CipherSuites: suites, InsecureSkipVerify: true}) //nolint:gosec // the test is about old versions
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	return c.ConnectionState(), nil
}

func checkMetricsTLS(t *testing.T, r *running) {
	set := func(profile string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("config.openshift.io/v1")
		u.SetKind("APIServer")
		u.SetName("cluster")
		if err := r.Patch(context.Background(), u, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"tlsSecurityProfile":%s}}`, profile))); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { set("null") })
	eventually := func(what string, done func() bool) {
		t.Helper()
		if err := r.eventually(what, done); err != nil {
			t.Fatal(err)
		}
	}
	accepts := func(version uint16, suites ...uint16) bool {
		_, err := r.handshake(version, suites...)
		return err == nil
	}
	const other, one = tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
	if !accepts(tls.VersionTLS12) || accepts(tls.VersionTLS11) {
		t.Error("without a profile it is not Intermediate")
	}
	if accepts(tls.VersionTLS12, tls.TLS_RSA_WITH_AES_128_GCM_SHA256) {
		t.Error("a suite is accepted that Intermediate does not have")
	}
	set(`{"type":"Modern"}`)
	eventually("Modern to be followed", func() bool { return !accepts(tls.VersionTLS12) })
	if !accepts(tls.VersionTLS13) {
		t.Error("Modern refuses TLS 1.3")
	}
	set(`{"type":"Old"}`)
	eventually("Old to be followed", func() bool { return accepts(tls.VersionTLS10) })
	set(`{"type":"Custom","custom":{"ciphers":["ECDHE-RSA-AES256-GCM-SHA384"],"minTLSVersion":"VersionTLS12"}}`)
	eventually("Custom to be followed", func() bool { return !accepts(tls.VersionTLS11) && !accepts(tls.VersionTLS12, other) })
	if state, err := r.handshake(tls.VersionTLS12, other, one); err != nil || state.CipherSuite != one {
		t.Errorf("%s, %v", tls.CipherSuiteName(state.CipherSuite), err)
	}
	r.certificate("second.example.com")
	if state, err := r.handshake(tls.VersionTLS12, one); err != nil || state.PeerCertificates[0].VerifyHostname("second.example.com") != nil {
		t.Errorf("the renewed certificate is not served: %v", err)
	}
}

func checkMetrics(t *testing.T, r *running) {
	desired := r.desired("")
	begun := time.Now().Add(-time.Hour).Truncate(time.Second)
	turn := plan.Turn{Bundle: desired.Bundle, Impact: bundle.ImpactReboot, Begun: begun, Permitted: begun.Add(2 * time.Minute), Ended: begun.Add(5 * time.Minute)}
	noted, err := plan.State{Turn: turn}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	before := r.node().Annotations
	reported, err := published.DecodeReport(before[published.ReportAnnotation])
	if err != nil || reported.Facts == nil {
		t.Fatalf("no facts: %v", err)
	}
	facts := *reported.Facts
	facts.PendingBoots = []bundle.BootReason{bundle.BootForUpdates}
	report, err := published.Report{
		State: published.StateRolledBack, Cause: "chosen by a host", Pulled: 7, Desired: desired.Bundle, Repaired: 3, Message: "Grüße\x00 from the host", Facts: &facts,
		Images: published.ImageProgress{Wanted: 5, Present: 2},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.t = t
		r.annotate(published.ReportAnnotation, before[published.ReportAnnotation])
		r.annotate(published.RolloutAnnotation, "")
	})
	r.annotate(published.RolloutAnnotation, noted)
	r.annotate(published.ReportAnnotation, report)
	token := r.reader("prometheus-again")
	var text string
	var families map[string]*dto.MetricFamily
	if err := r.eventually("a failed node in the metrics", func() bool {
		_, text = r.scrape(token)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if families, err = parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return value(families, "wmco_node_state", "node", nodeName, "state", string(nodestate.Degraded), "reason", "RolledBack") == 1
	}); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	got := map[string]float64{}
	for name, labels := range map[string][]string{
		"wmco_node_pending_since_timestamp_seconds": {"node", nodeName},
		"wmco_node_drift_repaired_entries":          {"node", nodeName},
		"wmco_node_rolled_back_changes":             {"node", nodeName},
		"wmco_nodes":                                {"state", string(nodestate.Degraded)},
		"wmco_rolled_back_nodes":                    {"cause", "other"},
		"wmco_node_pulled_bytes":                    {"node", nodeName},
		"wmco_node_windows_reboot_pending":          {"node", nodeName, "reason", string(bundle.BootForUpdates)},
		"wmco_node_pinned_images_missing":           {"node", nodeName},
		"wmco_ssh_bytes_total":                      {"direction", "sent"},
		"wmco_ssh_logins_total":                     nil,
		"wmco_node_last_change_seconds":             {"node", nodeName, "impact", "reboot", "phase", "drain"},
		"wmco_condition":                            {"type", "Published", "status", "True", "reason", "Published"},
		"wmco_join_failures_total":                  {"reason", "LoginRefused"},
		"wmco_scrape_complete":                      nil,
	} {
		got[name] = value(families, name, labels...)
	}
	if diff := cmp.Diff(map[string]float64{
		"wmco_node_pending_since_timestamp_seconds": float64(begun.Unix()), "wmco_node_drift_repaired_entries": 3, "wmco_node_rolled_back_changes": 1,
		"wmco_rolled_back_nodes": 1, "wmco_node_pulled_bytes": 7, "wmco_node_windows_reboot_pending": 1, "wmco_node_pinned_images_missing": 3, "wmco_ssh_bytes_total": 5, "wmco_ssh_logins_total": 7,
		"wmco_nodes": 1, "wmco_node_last_change_seconds": 120, "wmco_condition": 1, "wmco_join_failures_total": 0, "wmco_scrape_complete": 1,
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if value(families, "wmco_published_bytes_total") < 1000 || value(families, "wmco_oldest_pending_change_seconds") < 3600 {
		t.Errorf("no bytes were published, or no change is pending:\n%s", text)
	}
	r.checkSecrets(text)
	checkServed(t, families)
}

// value returns the value of a metric with these labels, in pairs; -1 if there is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	wanted := map[string]string{}
	for pair := range slices.Chunk(labels, 2) {
		wanted[pair[0]] = pair[1]
	}
	for _, m := range families[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		if maps.Equal(have, wanted) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return -1
}

// checkSecrets looks for each line of each Secret of the cluster, and for what nodes report.
func (r *running) checkSecrets(text string) {
	r.t.Helper()
	var list corev1.SecretList
	if err := r.List(r.t.Context(), &list); err != nil || len(list.Items) < 5 {
		r.t.Fatalf("%d Secrets, %v", len(list.Items), err)
	}
	searched := []string{"Grüße"}
	for _, s := range list.Items {
		for _, data := range s.Data {
			searched = append(searched, string(data))
			searched = append(searched, strings.Split(string(data), "\n")...)
		}
	}
	for _, secret := range searched {
		if len(secret) >= 6 && strings.Contains(text, secret) {
			r.t.Error("the metrics hold a secret, or text of a host")
		}
	}
}

// recorded has the metrics that the operator serves itself with their labels, and those of its libraries that rules and panels name.
// internal/verify/monitoring holds rules and dashboard to it, internal/verify/prometheus their labels and the series of their tests.
const recorded = "../internal/verify/monitoring/testdata/operator.json"

// checkServed compares the served metrics with the record.
func checkServed(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, f := range families {
		if _, named := want[name]; !named && !strings.HasPrefix(name, "wmco_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		got[name] = slices.AppendSeq([]string{}, maps.Keys(labels))
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what the operator serves (-recorded +served):\n%s", recorded, diff)
	}
	for _, name := range []string{"go_goroutines", "workqueue_depth"} {
		if families[name] == nil {
			t.Errorf("%s is not served", name)
		}
	}
}
