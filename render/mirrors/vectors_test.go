package mirrors_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/bundle"
	"wmco/render/mirrors"
	"wmco/render/mirrors/mirrorstest"
)

// vector is one configuration and what OpenShift's own code makes of it: entries of registries.conf, or a refusal.
// testdata/merge.jsonl.gz holds 3,000 of them, results of openshift/runtime-utils of 2023-09-21 and of the checks of the
// machine-config-operator. internal/verify/registriesconf runs that code itself, if its modules are available.
type vector struct {
	Sets []struct {
		Kind, Object, Source, Policy string
		Mirrors                      []string
	}
	Entries []mirrorstest.Entry
	Refused string
}

func vectors(t *testing.T) []vector {
	t.Helper()
	file, err := os.Open("testdata/merge.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	zr, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	for decoder := json.NewDecoder(zr); ; {
		var v vector
		switch err := decoder.Decode(&v); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		}
		list = append(list, v)
	}
}

func (v vector) sets() []mirrors.Set {
	var sets []mirrors.Set
	for _, s := range v.Sets {
		sets = append(sets, mirrors.Set{
			Kind: mirrors.SetKind(s.Kind), Ref: bundle.Ref{Kind: s.Kind, Name: s.Object}, Source: s.Source, Mirrors: s.Mirrors, Policy: mirrors.Policy(s.Policy),
		})
	}
	return sets
}

// replaced is what encoding/json writes for bytes that are not UTF-8. A message that quotes such bytes cannot be compared.
const replaced = "\ufffd"

func (v vector) isMangled() bool {
	for _, s := range v.Sets {
		if strings.Contains(s.Source+strings.Join(s.Mirrors, ""), replaced) {
			return true
		}
	}
	return false
}

func TestMergingAgreesWithOpenShift(t *testing.T) {
	all := vectors(t)
	if len(all) != 3000 {
		t.Fatalf("%d vectors, want 3000", len(all))
	}
	compared := map[bool]int{}
	for i, v := range all {
		refused := v.Refused != ""
		result := mirrors.Build(mirrors.Inputs{Sets: v.sets()}, mirrors.Options{PartialNever: mirrors.Closed})
		if result.Findings.Refused() != refused {
			t.Fatalf("vector %d: OpenShift refuses with %q; our findings: %+v\nof %+v", i, v.Refused, result.Findings, v.sets())
		}
		if refused && !v.isMangled() && !mirrorstest.Refuses(result.Findings, v.Refused) {
			t.Fatalf("vector %d: OpenShift refuses with %q; our findings: %+v\nof %+v", i, v.Refused, result.Findings, v.sets())
		}
		if diff := cmp.Diff(v.Entries, mirrorstest.Entries(v.sets()), cmpopts.EquateEmpty()); !refused && diff != "" {
			t.Fatalf("vector %d (-OpenShift +ours):\n%s\nof %+v", i, diff, v.sets())
		}
		compared[refused]++
	}
	// 2,032 are refused. Without this check, the test would pass if the field Refused were not read.
	if compared[true] != 2032 || compared[false] != 968 {
		t.Errorf("%d refused and %d merged vectors were compared", compared[true], compared[false])
	}
}
