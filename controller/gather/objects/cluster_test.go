package objects_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
)

// TestClusterRefusals checks that every refused request is a finding and that the other objects are read.
func TestClusterRefusals(t *testing.T) {
	node := objects.Want{Version: "v1", Kind: "Node"}
	config := objects.Want{Version: "v1", Kind: "ConfigMap", Namespace: "a", Names: []string{"two", "one"}}
	proxy := objects.Want{Group: "config.openshift.io", Version: "v1", Kind: "Proxy", Names: []string{"cluster"}}
	missing := func(group, version string) objects.Want {
		return objects.Want{Group: group, Version: version, Kind: "None"}
	}
	notServed := func(kind, apiVersion string) bundle.Finding {
		return bundle.Finding{
			Severity: bundle.SeverityError, Reason: "KindNotServed", Object: bundle.Ref{Kind: kind},
			Message: "the cluster does not serve " + kind + " of " + apiVersion,
			Fix:     "install the component that defines the kind, or use a version of this program for this cluster",
		}
	}
	for _, c := range []struct {
		name    string
		refuses []string
		wants   []objects.Want
		objects []string
		want    bundle.Findings
	}{
		{name: "a list, and names in a namespace, are forbidden", refuses: []string{"list nodes", "get configmaps a"}, wants: []objects.Want{node, config, proxy},
			objects: []string{"Proxy/cluster"},
			want: bundle.Findings{
				{Severity: bundle.SeverityError, Reason: "Forbidden", Object: bundle.Ref{Kind: "ConfigMap", Namespace: "a"},
					Message: "the user cannot get configmaps in namespace a",
					Fix:     `add the rule {apiGroups: [""], resources: ["configmaps"], verbs: ["get"], resourceNames: ["one", "two"]} to a Role in namespace a that is bound to this user`},
				{Severity: bundle.SeverityError, Reason: "Forbidden", Object: bundle.Ref{Kind: "Node"},
					Message: "the user cannot list nodes in the whole cluster",
					Fix:     `add the rule {apiGroups: [""], resources: ["nodes"], verbs: ["list"]} to a ClusterRole that is bound to this user`},
			}},
		{name: "a name without a namespace is forbidden, optional or not", refuses: []string{"get proxies"},
			wants:   []objects.Want{{Group: "config.openshift.io", Version: "v1", Kind: "Proxy", Names: []string{"cluster"}, Optional: true}, node},
			objects: []string{"Node/linux", "Node/win-a", "Node/win-b"},
			want: bundle.Findings{{Severity: bundle.SeverityError, Reason: "Forbidden", Object: bundle.Ref{Kind: "Proxy"},
				Message: "the user cannot get proxies.config.openshift.io in the whole cluster",
				Fix:     `add the rule {apiGroups: ["config.openshift.io"], resources: ["proxies"], verbs: ["get"], resourceNames: ["cluster"]} to a ClusterRole that is bound to this user`}}},
		{name: "a group, a version and a kind are not served",
			wants:   []objects.Want{missing("none.example.com", "v1"), missing("apps", "v9"), missing("apps", "v1"), proxy},
			objects: []string{"Proxy/cluster"},
			want:    bundle.Findings{notServed("None", "apps/v1"), notServed("None", "apps/v9"), notServed("None", "none.example.com/v1")}},
		{name: "names of a kind that is not served",
			wants: []objects.Want{{Group: "apps", Version: "v1", Kind: "None", Names: []string{"a"}}, {Group: "apps", Version: "v9", Kind: "None", Namespace: "b", Names: []string{"a"}}},
			want:  bundle.Findings{notServed("None", "apps/v1"), notServed("None", "apps/v9")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(contractWorld())
			a.Refuses = c.refuses
			set, err := objects.NewClusterReader(clientOf(t, a)).Read(context.Background(), c.wants)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range set.Objects {
				got = append(got, o.Ref.String())
			}
			if diff := cmp.Diff(c.objects, got); diff != "" {
				t.Errorf("objects: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.want, set.Findings); diff != "" {
				t.Errorf("findings: -want +got:\n%s", diff)
			}
		})
	}
}

// TestClusterRequests checks the requests for each kind of want: the operator has rights for exactly these.
func TestClusterRequests(t *testing.T) {
	a := newAPI(contractWorld())
	_, err := objects.NewClusterReader(clientOf(t, a)).Read(context.Background(), []objects.Want{
		{Group: "config.openshift.io", Version: "v1", Kind: "Proxy", Names: []string{"cluster"}},
		{Version: "v1", Kind: "ConfigMap", Namespace: "a", Names: []string{"one", "none"}},
		{Version: "v1", Kind: "ConfigMap", Namespace: "b", NamePrefix: "o"},
		{Version: "v1", Kind: "Node", Labels: map[string]string{"zone": "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"get proxies cluster", "get configmaps a/one", "get configmaps a/none", "list configmaps b", "list nodes"}
	if diff := cmp.Diff(want, a.Asked()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnreachableClusterIsAnError(t *testing.T) {
	server := httptest.NewServer(newAPI(contractWorld()))
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, err = objects.NewClusterReader(c).Read(context.Background(), someWants())
	if err == nil || !strings.HasPrefix(err.Error(), "list Proxy: ") {
		t.Errorf("the error is %v", err)
	}
}

// TestLaterReadersReplace reads a cluster with a file over it.
func TestLaterReadersReplace(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: linux}\n"})
	set, err := objects.NewOverlayReader(clusterOfWorld(t), objects.NewPathsReader([]string{dir}, nil)).Read(context.Background(), []objects.Want{{Version: "v1", Kind: "Node"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Objects) != 3 || !slices.ContainsFunc(set.Findings, func(f bundle.Finding) bool {
		return f.Reason == reason.Replaced && f.Message == "replaces the one in the cluster"
	}) {
		t.Error(printed(set))
	}
}
