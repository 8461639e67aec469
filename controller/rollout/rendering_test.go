package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/render"
)

// A layer that is too large is that node's alone: the bundles of the others are published.
func TestABundleThatIsTooLargeConcernsOneNode(t *testing.T) {
	node := func(name string, size int) desired.Rendered {
		layer := func(kind bundle.LayerKind, size int) bundle.Layer {
			data := make([]byte, size)
			return bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: []bundle.File{{
				Path: `C:\k\` + name, Digest: bundle.Of(data), Size: int64(size), Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: data},
			}}}
		}
		return desired.Rendered{Node: render.Node{Name: name}, Bundle: render.Bundle{Bundle: bundle.Bundle{Cluster: layer(bundle.LayerCluster, 1), Node: layer(bundle.LayerNode, size)}, ClusterDigest: bundle.Of([]byte("cluster")), NodeDigest: bundle.Of([]byte(name))}}
	}
	var r rendering
	if err := r.packBundles(new(layers.Cache), []desired.Rendered{node("win-a", 1), node("win-b", 64<<20), node("win-c", 2)}); err != nil {
		t.Fatal(err)
	}
	if len(r.wanted) != 2 || r.wanted[0].Node != "win-a" || r.wanted[1].Node != "win-c" {
		t.Errorf("%d bundles are published", len(r.wanted))
	}
	if len(r.refused) != 1 || r.refused[0].name != "win-b" || r.refused[0].Reason != reason.BundleTooLarge || !strings.Contains(findingSentence(r.refused[0].Finding), "fix: ") {
		t.Errorf("refused: %+v", r.refused)
	}
}

// TestANodeForWhichNothingIsRenderedIsNamed: it keeps its bundle for as long as its facts are not used, whatever the inputs become.
func TestANodeForWhichNothingIsRenderedIsNamed(t *testing.T) {
	h := hostsWith(map[string]string{"win-a": "", "win-b": ""})
	for i, n := range h.All {
		if n.Name == "win-b" {
			h.All[i].Facts = bundle.Facts{Schema: bundle.FactsSchema}
		}
	}
	for _, node := range []string{"win-a", "win-b", "win-unknown"} {
		h.Findings = append(h.Findings, bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.FactsContradicted, Node: node})
	}
	var r rendering
	r.nameUnrendered(h)
	if len(r.refused) != 1 || r.refused[0].name != "win-a" || r.refused[0].Reason != reason.FactsContradicted {
		t.Errorf("%+v", r.refused)
	}
}

// TestNothingIsPublishedForAnOlderAPIServer: not for as long as one of them is of an older minor version than the kubelet, and it is looked at
// again soon, as API servers send no events.
func TestNothingIsPublishedForAnOlderAPIServer(t *testing.T) {
	for name, tt := range map[string]struct {
		servers []string
		want    string
	}{
		"all are of its version": {[]string{"v1.36.0", "v1.36.3"}, ""},
		"one is newer":           {[]string{"v1.36.0", "v1.37.2"}, ""},
		"one is older":           {[]string{"v1.36.3", "v1.35.4", "v1.36.3"}, reason.KubeletTooNew},
		"one gives no version":   {[]string{"v1.36.3", "unknown"}, reason.APIServerVersionUnknown},
	} {
		r := renderer{servers: func(context.Context) ([]string, error) { return tt.servers, nil }}
		found, err := r.checkVersionSkew(t.Context(), "v1.36.3")
		if err != nil || (len(found) > 0) != (tt.want != "") || len(found) > 0 && found[0].Reason != tt.want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		want := recheck
		if tt.want != "" {
			want = recheckServers
		}
		if got := (rendering{blocking: found}).validFor(); got != want {
			t.Errorf("%s: looked at again after %s, want %s", name, got, want)
		}
	}
	away := errors.New("no answer")
	r := renderer{servers: func(context.Context) ([]string, error) { return nil, away }}
	if _, err := r.checkVersionSkew(t.Context(), "v1.36.3"); !errors.Is(err, away) {
		t.Errorf("without an answer: %v", err)
	}
	r = renderer{servers: func(context.Context) ([]string, error) {
		return nil, fmt.Errorf("reading: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "kubernetes", errors.New("no rule")))
	}}
	if found, err := r.checkVersionSkew(t.Context(), "v1.36.3"); err != nil || len(found) != 1 || !strings.Contains(found[0].Fix, "deploy/rbac") {
		t.Errorf("without the right to ask: %+v, %v", found, err)
	}
}
