package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/internal/cli"
	"wmco/internal/test/testenv/readonly"
)

// patchedAPI is an API server with Nodes that keeps what Nodes are patched with, and refuses to change one of them.
type patchedAPI struct {
	readonly.API
	refused string
	patches []string
	// changed, if set, is the Node as another user has written it when the first patch comes, which is a conflict.
	changed *unstructured.Unstructured
	// version is the answer of /version, as JSON.
	version string
}

func (p *patchedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" && p.version != "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.version)
		return
	}
	if r.Method != http.MethodPatch {
		p.API.ServeHTTP(w, r)
		return
	}
	name := filepath.Base(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	if err != nil || name == p.refused {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`, http.StatusForbidden)
		return
	}
	if p.changed != nil {
		p.Objects = slices.DeleteFunc(p.Objects, func(o unstructured.Unstructured) bool { return o.GetName() == name })
		p.Objects, p.changed = append(p.Objects, *p.changed), nil
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"changed","code":409}`, http.StatusConflict)
		return
	}
	p.patches = append(p.patches, name+" "+string(body))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}})
}

func nodeObject(name, system string, annotations map[string]any) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{
		"name": name, "resourceVersion": "7", "labels": map[string]any{"kubernetes.io/os": system, "zone": name[len(name)-1:]}, "annotations": annotations,
	}}}
}

// newPatchedAPI serves two Windows nodes and a Linux one.
func newPatchedAPI(t *testing.T) *patchedAPI {
	t.Helper()
	p := &patchedAPI{API: readonly.API{Objects: []unstructured.Unstructured{
		nodeObject("win-a", "windows", nil), nodeObject("linux-a", "linux", nil),
		nodeObject("win-b", "windows", map[string]any{"windowsmachineconfig.openshift.io/confirm-deleted": "settings"}),
	}}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	return p
}

func TestVerbsSetTheAnnotationThatTheyPrint(t *testing.T) {
	const domain = "windowsmachineconfig.openshift.io/"
	for _, c := range []struct {
		line    string
		refused string
		status  int
		stdout  string
		patches []string
	}{
		{line: "pause win-a", stdout: "node/win-a annotated: " + domain + "paused=true\n", patches: []string{`win-a {"metadata":{"annotations":{"` + domain + `paused":"true"}}}`}},
		{line: "resume -l zone=b", stdout: "node/win-b annotated: " + domain + "paused-\n", patches: []string{`win-b {"metadata":{"annotations":{"` + domain + `paused":null}}}`}},
		{line: "reboot win-a", stdout: "node/win-a annotated: " + domain + "reboot=2026-06-03T00:00:00Z\n", patches: []string{`win-a {"metadata":{"annotations":{"` + domain + `reboot":"2026-06-03T00:00:00Z"}}}`}},
		{line: "retry win-a", stdout: "node/win-a annotated: " + domain + "retry=2026-06-03T00:00:00Z\n", patches: []string{`win-a {"metadata":{"annotations":{"` + domain + `retry":"2026-06-03T00:00:00Z"}}}`}},
		{line: "pause --all --dry-run", stdout: "node/win-a annotated: " + domain + "paused=true (dry run)\nnode/win-b annotated: " + domain + "paused=true (dry run)\n"},
		{
			line: "confirm --all --input mirrors", stdout: "node/win-a annotated: " + domain + "confirm-deleted=mirrors\nnode/win-b annotated: " + domain + "confirm-deleted=settings,mirrors\n",
			patches: []string{`win-a {"metadata":{"annotations":{"` + domain + `confirm-deleted":"mirrors"},"resourceVersion":"7"}}`, `win-b {"metadata":{"annotations":{"` + domain + `confirm-deleted":"settings,mirrors"},"resourceVersion":"7"}}`},
		},
		{line: "confirm win-a --input NodeImageUnreachable", stdout: "node/win-a annotated: " + domain + "confirm-finding=NodeImageUnreachable\n", patches: []string{`win-a {"metadata":{"annotations":{"` + domain + `confirm-finding":"NodeImageUnreachable"},"resourceVersion":"7"}}`}},
		// One that is refused does not stop the others.
		{line: "pause --all", refused: "win-a", status: cli.ExitPartial, stdout: "node/win-b annotated: " + domain + "paused=true\n", patches: []string{`win-b {"metadata":{"annotations":{"` + domain + `paused":"true"}}}`}},
		{line: "pause win-a", refused: "win-a", status: cli.ExitUnreachable},
		// Nothing is changed where the command line is wrong.
		{line: "pause win-a linux-a", status: cli.ExitUsage},
		{line: "pause win-a win-z", status: cli.ExitUsage},
		{line: "pause", status: cli.ExitUsage},
		{line: "pause win-a --all", status: cli.ExitUsage},
		{line: "pause -l zone=nowhere", status: cli.ExitUsage},
		{line: "confirm win-a", status: cli.ExitUsage},
		{line: "confirm win-a --input instances", status: cli.ExitUsage},
		{line: "confirm win-a --input mirrors,NodeImageUnreachable", status: cli.ExitUsage},
	} {
		api := newPatchedAPI(t)
		api.refused = c.refused
		var out, errOut bytes.Buffer
		now := func() time.Time { return time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC) }
		status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: now}, strings.Fields(c.line))
		if status != c.status || out.String() != c.stdout || c.status != cli.ExitDone && errOut.Len() == 0 {
			t.Errorf("%s: status %d, want %d\n%s%s", c.line, status, c.status, out.String(), errOut.String())
		}
		if diff := cmp.Diff(c.patches, api.patches); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.line, diff)
		}
	}
}

// TestAConfirmationKeepsThatOfAnother who gave it since the Node was read.
func TestAConfirmationKeepsThatOfAnother(t *testing.T) {
	const confirm = "windowsmachineconfig.openshift.io/confirm-deleted"
	api := newPatchedAPI(t)
	other := nodeObject("win-a", "windows", map[string]any{confirm: "settings"})
	other.SetResourceVersion("8")
	api.changed = &other
	var out, errOut bytes.Buffer
	status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: time.Now}, strings.Fields("confirm win-a --input mirrors"))
	want := []string{`win-a {"metadata":{"annotations":{"` + confirm + `":"settings,mirrors"},"resourceVersion":"8"}}`}
	if diff := cmp.Diff(want, api.patches); diff != "" || status != cli.ExitDone || out.String() != "node/win-a annotated: "+confirm+"=settings,mirrors\n" {
		t.Errorf("status %d\n%s%s(-want +got):\n%s", status, out.String(), errOut.String(), diff)
	}
}

// TestAdoptIsForNodesThatWait: those of this operator are left out, and refused where they are named.
func TestAdoptIsForNodesThatWait(t *testing.T) {
	const domain = "windowsmachineconfig.openshift.io/"
	asked := []string{`win-old {"metadata":{"annotations":{"` + domain + `adopt":"true"}}}`}
	for line, want := range map[string]struct {
		status  int
		patches []string
		errOut  string
	}{
		"adopt --all":         {patches: asked},
		"adopt win-old":       {patches: asked},
		"adopt win-old win-a": {status: cli.ExitUsage, errOut: "win-a is not a node of the existing operator that waits for adoption"},
		"adopt -l zone=a":     {status: cli.ExitUsage, errOut: "no Windows node that is chosen waits"},
	} {
		api := newPatchedAPI(t)
		api.Objects = append(api.Objects, nodeObject("win-old", "windows", map[string]any{domain + "version": "11.0.0-4f0a7c1"}))
		var out, errOut bytes.Buffer
		status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: time.Now}, strings.Fields(line))
		if status != want.status || !strings.Contains(errOut.String(), want.errOut) {
			t.Errorf("%s: status %d\n%s%s", line, status, out.String(), errOut.String())
		}
		if diff := cmp.Diff(want.patches, api.patches); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
