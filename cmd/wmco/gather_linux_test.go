package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/rollout/plan"
	"wmco/report/mustgather"
)

// agentLog is a log with something in it that can log in.
const agentLog = `I0101 12:00:00 agent.go:1] "applied" bundle="0123"
fetching https://example-user:example-log-password@registry.example.com/v2/
Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl-example-token
`

// collected is the folder of a cluster with these objects, and with what an operator and a node would add.
func collected(t *testing.T, cluster map[string]unstructured.Unstructured) (dir, from string, summary mustgather.Summary) {
	t.Helper()
	from = t.TempDir()
	number := 0
	put := func(object any) {
		number++
		text, err := json.Marshal(object)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(from, strings.Repeat("x", number)+".json"), text, 0o600))
	}
	for _, o := range cluster {
		put(o.Object)
	}
	node := rolledNode(t, "win-z", "new", plan.Turn{Begun: minutesAgo(9)})
	put(node)
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "operator-0", "namespace": gather.OperatorNamespace},
		"spec":   map[string]any{"containers": []any{map[string]any{"name": "manager", "env": []any{map[string]any{"name": "TOKEN", "value": "example-environment-secret"}}}}},
		"status": map[string]any{"containerStatuses": []any{map[string]any{"name": "manager", "restartCount": 1}}},
	}
	put(pod)
	put(operatorSays("False", "0 of 2 nodes updated"))
	logs := func(_ context.Context, path string, query map[string]string, _ int64) ([]byte, error) {
		if strings.HasPrefix(path, "/api/v1/nodes/win-z/") || query["previous"] == "false" {
			return []byte(agentLog), nil
		}
		return nil, errors.New("dial tcp: no route to host")
	}
	dir = filepath.Join(t.TempDir(), "must-gather")
	summary, err := mustgather.Collect(t.Context(), mustgather.Source{Objects: objects.NewPathsReader([]string{from}, nil), Logs: logs, Namespace: gather.OperatorNamespace, Version: "v1", Now: rolloutNoon()}, dir)
	must(t, err)
	return dir, from, summary
}

func TestAMustGatherHoldsNoSecret(t *testing.T) {
	dir, from, _ := collected(t, secretCluster(t))
	planted := append([]string{"example-log-password", "c2lnbmF0dXJl-example-token"}, plantedSecrets...)
	planted = append(planted, privateKeys(t)...)
	var before [][]byte
	for _, data := range filesOf(t, from) {
		before = append(before, views(data, 4)...)
	}
	before = append(before, []byte(agentLog))
	for _, secret := range planted {
		if !holds(before, secret) {
			t.Errorf("the cluster does not hold %s, or the search does not find it", secret)
		}
	}
	for path, data := range filesOf(t, dir) {
		after := views(data, 4)
		for _, secret := range planted {
			if holds(after, secret) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
	}
}

// TestARedirectOfANodeIsNotFollowed: the API server passes on what a kubelet answers, and client-go adds the token to each request, for whatever host.
func TestARedirectOfANodeIsNotFollowed(t *testing.T) {
	stolen := 0
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen++ }))
	defer foreign.Close()
	api := httptest.NewServer(http.RedirectHandler(foreign.URL, http.StatusFound))
	defer api.Close()
	logs, err := logsOf(&rest.Config{Host: api.URL, BearerToken: "example-token"})
	must(t, err)
	if text, err := logs(t.Context(), "/api/v1/nodes/win-a/proxy/logs/x", nil, 1<<10); err == nil || stolen > 0 {
		t.Errorf("%d requests to another host, %q, %v", stolen, text, err)
	}
}

// TestLogsAreReadThroughTheAPIServer, which may be below a path, as the user of the kubeconfig.
func TestLogsAreReadThroughTheAPIServer(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Range"), r.Header.Get("Authorization")}, " "))
	}))
	defer api.Close()
	logs, err := logsOf(&rest.Config{Host: api.URL + "/below", BearerToken: "example-token"})
	must(t, err)
	for path, want := range map[string]string{
		"/api/v1/nodes/win-a/proxy/logs/wicd/x": "GET /below/api/v1/nodes/win-a/proxy/logs/wicd/x?container=a%26b bytes=-1024 Bearer example-token",
		"/api/v1/namespaces/n/pods/p/log":       "GET /below/api/v1/namespaces/n/pods/p/log?container=a%26b  Bearer example-token",
	} {
		if text, err := logs(t.Context(), path, map[string]string{"container": "a&b"}, 1<<10); err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestWhatAKubeletAnswersHasAnEnd: the API server passes on an error as the kubelet has made it.
func TestWhatAKubeletAnswersHasAnEnd(t *testing.T) {
	const limit = 1 << 10
	for name, answer := range map[string]http.HandlerFunc{
		"come again in a day": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"an error without an end": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = w.Write(bytes.Repeat([]byte("x"), limit))
			}
		},
		"an error with a long message": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(map[string]string{"kind": "Status", "message": strings.Repeat("x", limit-100)})
		},
		"a warning": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Warning", `299 - "log in again"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(answer)
			defer api.Close()
			warnings := &warningLog{}
			rest.SetDefaultWarningHandler(warnings)
			defer rest.SetDefaultWarningHandler(rest.WarningLogger{})
			logs, err := logsOf(&rest.Config{Host: api.URL, Timeout: time.Minute})
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err = logs(ctx, "/api/v1/nodes/win-a/proxy/logs/x", nil, limit)
			if ctx.Err() != nil || warnings.count > 0 || err != nil && len(err.Error()) > 600 {
				t.Errorf("%d warnings, a wait that ended with %v, %.700v", warnings.count, ctx.Err(), err)
			}
		})
	}
}

// warningLog counts the warnings of API servers.
type warningLog struct{ count int }

func (w *warningLog) HandleWarningHeader(int, string, string) { w.count++ }

// privateKeys are parts of the private keys of the example cluster.
func privateKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "golden", "clusters", "common", "secret-cloud-private-key.yaml"))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); len(line) > 60 && !strings.Contains(line, " ") {
			return []string{line[:60]}
		}
	}
	return nil
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		must(t, err)
		files[rel], err = os.ReadFile(path)
		return err
	}))
	return files
}

func TestAMustGatherHasWhatStandsOnTheNodes(t *testing.T) {
	dir, _, summary := collected(t, secretCluster(t))
	files := filesOf(t, dir)
	for _, name := range []string{
		"version", "collected", "missing.txt", "cluster-scoped-resources/core/nodes/win-z.yaml", "cluster-scoped-resources/config.openshift.io/proxies/cluster.yaml",
		"namespaces/openshift-windows-machine-config-operator/windowsmachineconfig.openshift.io/windowsnodesstatuses/windows-nodes.yaml",
		"namespaces/openshift-config/core/secrets/pull-secret.yaml", "nodes/win-z/desired.json", "nodes/win-z/report.json", "nodes/win-z/rollout.json",
		"nodes/win-z/logs/wicd/windows-instance-config-daemon.exe.INFO", "namespaces/openshift-windows-machine-config-operator/pods/operator-0/manager/manager/logs/current.log",
	} {
		if len(files[name]) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	missing := string(files["missing.txt"])
	for _, want := range []string{"logs/previous.log: dial tcp: no route to host", "Node win-z, applied bundle:", `C:\ProgramData\wmco`} {
		if !strings.Contains(missing, want) {
			t.Errorf("missing.txt does not have %q:\n%s", want, missing)
		}
	}
	if summary.Nodes != 2 || summary.Logs != 2 || !strings.Contains(string(files["nodes/win-z/desired.json"]), `"C:\\k\\shared"`) && !strings.Contains(string(files["nodes/win-z/desired.json"]), "its Secrets are not there") {
		t.Errorf("%+v\n%s", summary, files["nodes/win-z/desired.json"])
	}
}

// TestAMustGatherIsReadBack: a node is judged by the time of the collection, and the bundles are those of the cluster but for secrets.
func TestAMustGatherIsReadBack(t *testing.T) {
	dir, from, _ := collected(t, clusterObjects(t, "common", "azure", "traits/machine-config-operator"))
	var printed bytes.Buffer
	a := app{stdout: &printed, stderr: &printed, stdin: strings.NewReader(""), now: func() time.Time { return rolloutNoon().AddDate(0, 0, 7) }}
	if status := runCommand(t.Context(), a, []string{"status", "--from", dir}); status != 1 || strings.Contains(printed.String(), string(nodestate.NotReporting)) || !strings.Contains(printed.String(), "win-z") {
		t.Errorf("status %d\n%s", status, printed.String())
	}
	printed.Reset()
	if status := runCommand(t.Context(), a, []string{"render", "--from", dir, "--all"}); status != 0 || strings.Contains(printed.String(), "InputUnused") || strings.Contains(printed.String(), "DocumentSkipped") {
		t.Errorf("status %d\n%s", status, printed.String())
	}
	printed.Reset()
	a.stderr = io.Discard
	runCommand(t.Context(), a, []string{"diff", "--from", dir, "--against", from, "-o", "json"})
	var review struct {
		Same, Added, Removed []string
		Groups               []struct{ Changes []bundle.Change }
	}
	must(t, json.Unmarshal(printed.Bytes(), &review))
	if len(review.Added)+len(review.Removed) > 0 || len(review.Groups) == 0 {
		t.Errorf("%+v", review)
	}
	for _, g := range review.Groups {
		for _, c := range g.Changes {
			if !slices.ContainsFunc(c.Causes, func(r bundle.Ref) bool { return r.Kind == "Secret" }) {
				t.Errorf("%s is another one, and comes from no Secret", c.Entry)
			}
		}
	}
}
