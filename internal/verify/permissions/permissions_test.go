package permissions

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/internal/test/testenv/controlplane"
)

// TestJudge: a request that no permission permits, and a permission that no request needs, are wrong.
func TestJudge(t *testing.T) {
	shipped := []Permission{
		{"", "", "nodes", "patch", nil, false},
		{"openshift-windows-machine-config-operator", "", "secrets", "create", []string{"a", "b"}, false},
		{"", "", "configmaps", "list", nil, true},
		{"", "certificates.k8s.io", "signers", "approve", []string{"kubernetes.io/kubelet-serving"}, false},
	}
	ask := func(verb, resource, namespace, name string, status int) controlplane.Request {
		return controlplane.Request{User: OperatorUser, Verb: verb, Resource: resource, Namespace: namespace, Name: name, Status: status}
	}
	const own = "openshift-windows-machine-config-operator"
	fine := []controlplane.Request{ask("patch", "nodes", "", "win-1", 200), ask("patch", "secrets", own, "a", http.StatusCreated)}
	approved := ask("approve", "signers", "", "kubernetes.io/kubelet-serving", 200)
	approved.Group = "certificates.k8s.io"
	for _, c := range []struct {
		name     string
		requests []controlplane.Request
		want     []string
	}{
		{"all is needed and permitted", fine, nil},
		{"a permission that is not needed", fine[:1], []string{"nothing needs the permission to create secrets a, b"}},
		{"a request that failed needs nothing", []controlplane.Request{fine[0], ask("create", "secrets", own, "a", 409)}, []string{"nothing needs the permission to create secrets a, b"}},
		{
			"a request that is not permitted, twice", append(slices.Clone(fine), ask("delete", "nodes", "", "win-1", 403), ask("delete", "nodes", "", "win-1", 403)),
			[]string{"the operator may not: " + ask("delete", "nodes", "", "win-1", 403).String()},
		},
		{"a name that is not permitted", append(slices.Clone(fine), ask("create", "secrets", own, "c", 403)), []string{"the operator may not: " + ask("create", "secrets", own, "c", 403).String()}},
		{"a permission that a test took away", append(slices.Clone(fine), ask("patch", "nodes", "", "win-1", 403)), nil},
		{"what only some installations permit", append(slices.Clone(fine), ask("get", "secrets", "openshift-cluster-api", "windows-user-data", 403)), nil},
		{
			"what is never a request", append(slices.Clone(fine), approved),
			[]string{"the permission to approve signers.certificates.k8s.io kubernetes.io/kubelet-serving was used: it is not true that it " + never + "the API server checks it when a request is approved"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, JudgePermissions(shipped, c.requests)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestShipped: the roles of the operator are read, and only those.
func TestShipped(t *testing.T) {
	all, err := ReadShipped(filepath.Join("..", "..", "..", "deploy", "rbac"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(p Permission) bool { return p.verb == "patch" && p.resource == "nodes" && p.namespace == "" }) {
		t.Errorf("the operator may not patch Nodes: %v", all)
	}
	if _, err := ReadShipped(t.TempDir()); err == nil {
		t.Error("a folder without roles is accepted")
	}
}

// TestEveryLogIsThere: the log of a package whose tests have not all run is an error, and so is one without requests.
func TestEveryLogIsThere(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, requests ...controlplane.Request) {
		data, err := json.Marshal(requests)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "stories", name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(want string) {
		t.Helper()
		switch _, err := ReadLogs(folder, "stories"); {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		}
	}
	read("not all of its tests have run")
	if err := BeginLogs(filepath.Join(folder, "stories")); err != nil {
		t.Fatal(err)
	}
	write("1.json", controlplane.Request{Verb: "get"})
	read("not all of its tests have run")
	if err := EndLogs(filepath.Join(folder, "stories")); err != nil {
		t.Fatal(err)
	}
	read("")
	write("1.json")
	read("no request of an operator")
}
