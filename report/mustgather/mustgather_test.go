package mustgather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
)

// source has the objects of a text, and these logs.
func source(t *testing.T, text string, logs func(context.Context, string, map[string]string, int64) ([]byte, error)) Source {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Source{Objects: objects.NewPathsReader([]string{file}, nil), Logs: logs, Namespace: gather.OperatorNamespace, Version: "v1", Now: time.Unix(0, 0)}
}

func noLogs(context.Context, string, map[string]string, int64) ([]byte, error) {
	return nil, errors.New("dial tcp 10.0.0.9:10250: no route to host")
}

// whole returns all names and texts of a folder.
func whole(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestSecretsInTextsOfPeople: a password in an address is masked wherever people and programs write it.
func TestSecretsInTextsOfPeople(t *testing.T) {
	text := `
{apiVersion: v1, kind: Event, metadata: {name: a, namespace: openshift-windows-machine-config-operator}, message: "pulling through http://u:pass-event@proxy:3128 failed"}
---
{apiVersion: v1, kind: Event, metadata: {name: b, namespace: openshift-windows-machine-config-operator}, message: "set HTTPS_PROXY=u:pass-bare@proxy.example.com:3128"}
---
{apiVersion: v1, kind: Event, metadata: {name: c, namespace: default}, involvedObject: {kind: Node, name: win-a}, source: {component: windows-agent}, message: "Authorization: Bearer pass-token-0123456789"}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator, annotations: {note: "https://u:pass-annotation@x"}}, data: {config.yaml: "# https://u:pass-data@mirror.example.com/v2\nlogs: {}"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: openshift-windows-machine-config-operator}, data: {json: '{"proxy":"http:\/\/u:pass-json@proxy"}'}}
---
{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}, annotations: {mine: "http://u:p@ss-at@proxy", other: "http://u:pass-node@proxy"}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: windows-machine-config-operator, namespace: openshift-windows-machine-config-operator}, spec: {template: {spec: {containers: [{name: m, env: [{name: HTTP_PROXY, value: "u:pass-env@proxy:3128"}, {name: http_proxy, value: "http://u:pass-lower@proxy"}, {name: MINE, value: pass-mine}], args: ["--x=http://u:pass-argument@proxy"]}]}}}}
`
	dir := t.TempDir()
	if _, err := Collect(t.Context(), source(t, text, noLogs), dir); err != nil {
		t.Fatal(err)
	}
	all := whole(t, dir)
	for _, secret := range []string{
		"pass-event", "pass-bare", "pass-token", "pass-annotation", "pass-data", "pass-json", "ss-at", "pass-node", "pass-env", "pass-lower", "pass-mine", "pass-argument",
	} {
		if !strings.Contains(text, secret) || strings.Contains(all, secret) {
			t.Errorf("%s is in the folder", secret)
		}
	}
	for _, kept := range []string{"pulling through", "proxy.example.com:3128", "mirror.example.com/v2", "missing.txt"} {
		if !strings.Contains(all, kept) {
			t.Errorf("%q is gone", kept)
		}
	}
}

// TestAThousandNodes: the logs of many nodes have a limit together, nodes that do not answer are asked beside each other, and
// missing data is listed for each, always in the same order.
func TestAThousandNodes(t *testing.T) {
	var text strings.Builder
	const nodes = 1000
	for i := range nodes {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: Node, metadata: {name: win-%04d, labels: {kubernetes.io/os: windows}}}\n", i)
	}
	var asked, most atomic.Int64
	waiting, release := make(chan struct{}, nodes), make(chan struct{})
	logs := func(_ context.Context, path string, _ map[string]string, limit int64) ([]byte, error) {
		if strings.HasSuffix(path, "/ledger.json") {
			return []byte("{}"), nil
		}
		asked.Add(limit)
		most.Store(max(most.Load(), limit))
		waiting <- struct{}{}
		if len(waiting) == parallelNodes {
			close(release) // all places wait for this one
		}
		<-release
		if strings.Contains(path, "win-0500") {
			return nil, errors.New("the server could not find the requested resource")
		}
		return []byte("I0101 applied\n"), nil
	}
	dir := t.TempDir()
	summary, err := Collect(t.Context(), source(t, text.String(), logs), dir)
	if err != nil || summary.Nodes != nodes || summary.Logs != nodes-1 {
		t.Fatalf("%d nodes, %d logs, %v", summary.Nodes, summary.Logs, err)
	}
	if asked.Load() > allLogs || most.Load() < leastLog {
		t.Errorf("logs may have %d bytes, one %d", asked.Load(), most.Load())
	}
	missing, err := os.ReadFile(filepath.Join(dir, MissingFile))
	if err != nil || strings.Count(string(missing), "Node win-") < nodes || !strings.Contains(string(missing), "win-0500/logs/wicd/windows-instance-config-daemon.exe.INFO: the server could not find") {
		t.Errorf("%v\n%.400s", err, missing)
	}
	for i := 1; i < len(summary.Missing); i++ {
		if summary.Missing[i-1] > summary.Missing[i] {
			t.Fatalf("%q before %q", summary.Missing[i-1], summary.Missing[i])
		}
	}
}

// TestTheLedgerOfANodeIsItsCopy: text of a node is masked, and refused if it is no JSON.
func TestTheLedgerOfANodeIsItsCopy(t *testing.T) {
	ledgers := map[string]string{
		"win-good": `{"schema":3,"entries":[{"entry":"file C:\\k\\kubelet.conf"}],"folders":["http://u:pass-ledger@proxy"]}`,
		"win-bad":  "Only the end of a large file\"}]}",
	}
	logs := func(_ context.Context, path string, _ map[string]string, limit int64) ([]byte, error) {
		for name, text := range ledgers {
			if path == "/api/v1/nodes/"+name+"/proxy/logs/wicd/ledger.json" && limit == ledgerLimit {
				return []byte(text), nil
			}
		}
		return nil, errors.New("the server could not find the requested resource")
	}
	var text strings.Builder
	for _, name := range []string{"win-good", "win-bad", "win-old"} {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {kubernetes.io/os: windows}}}\n", name)
	}
	dir := t.TempDir()
	summary, err := Collect(t.Context(), source(t, text.String(), logs), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(ledgers["win-good"], "u:pass-ledger@", "****:****@", 1)
	if got, err := os.ReadFile(filepath.Join(dir, "nodes", "win-good", "ledger.json")); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	missing := strings.Join(summary.Missing, "\n")
	for _, want := range []string{"nodes/win-bad/ledger.json: it is no JSON", "nodes/win-old/ledger.json: the server could not find"} {
		if !strings.Contains(missing, want) {
			t.Errorf("%q is not in\n%s", want, missing)
		}
	}
	if strings.Contains(missing, "win-good/ledger.json") || strings.Contains(whole(t, dir), "Only the end") {
		t.Errorf("%s", missing)
	}
}

// TestWhatAHostSaysIsNoObjectOfTheCluster: the file that a host serves as its ledger may look like one.
func TestWhatAHostSaysIsNoObjectOfTheCluster(t *testing.T) {
	logs := func(context.Context, string, map[string]string, int64) ([]byte, error) {
		return []byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"config.openshift.io/v1","kind":"ImageDigestMirrorSet","metadata":{"name":"of-a-host"},"spec":{}}]}`), nil
	}
	const inNamespace = "{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-instances, namespace: openshift-windows-machine-config-operator}}\n---\n"
	const nodes = "{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}}}\n---\n{apiVersion: v1, kind: Node, metadata: {name: nodes, labels: {kubernetes.io/os: windows}}}\n"
	for text, want := range map[string]int{inNamespace + nodes: 3, nodes: 2} {
		dir := t.TempDir() // that of oc adm must-gather has a folder for each image
		if _, err := Collect(t.Context(), source(t, text, logs), filepath.Join(dir, "image")); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{dir, filepath.Join(dir, "image")} {
			set, err := objects.NewPathsReader([]string{from}, nil).Read(t.Context(), gather.WantedObjects(gather.OperatorNamespace))
			if err != nil || len(set.Objects) != want {
				t.Errorf("%d objects, want %d, %v", len(set.Objects), want, err)
			}
			for _, o := range set.Objects {
				if o.Name == "of-a-host" {
					t.Errorf("%s of %s is an input", o.Ref, o.Source)
				}
			}
		}
	}
}

// TestLogsOfPodsBeginAtATime where that is asked for.
func TestLogsOfPodsBeginAtATime(t *testing.T) {
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: openshift-windows-machine-config-operator}, spec: {containers: [{name: manager}]}}`
	for want, since := range map[string]time.Time{"": {}, "2026-01-01T10:00:00Z": time.Date(2026, 1, 1, 11, 0, 0, 0, time.FixedZone("", 3600))} {
		var asked []string
		s := source(t, pod, func(_ context.Context, _ string, query map[string]string, _ int64) ([]byte, error) {
			asked = append(asked, query["sinceTime"])
			return nil, nil
		})
		s.Since = since
		if _, err := Collect(t.Context(), s, t.TempDir()); err != nil || !slices.Equal(asked, []string{want}) {
			t.Errorf("%q, want %q, %v", asked, want, err)
		}
	}
}

// TestEventsAboutWindowsNodes: all Events about them, whoever sent them; about other Nodes only those of our programs, such as for a node
// that is gone.
func TestEventsAboutWindowsNodes(t *testing.T) {
	text := `
{apiVersion: v1, kind: Event, metadata: {name: agent, namespace: default}, involvedObject: {kind: Node, name: win-a}, source: {component: wmco-node}}
---
{apiVersion: v1, kind: Event, metadata: {name: operator, namespace: default}, involvedObject: {kind: Node, name: gone}, reportingComponent: windows-machine-config-operator}
---
{apiVersion: v1, kind: Event, metadata: {name: agent-gone, namespace: default}, involvedObject: {kind: Node, name: gone}, source: {component: wmco-node}}
---
{apiVersion: v1, kind: Event, metadata: {name: kubelet, namespace: default}, involvedObject: {kind: Node, name: win-a}, source: {component: kubelet}}
---
{apiVersion: v1, kind: Event, metadata: {name: linux, namespace: default}, involvedObject: {kind: Node, name: linux-a}, source: {component: kubelet}}
---
{apiVersion: v1, kind: Event, metadata: {name: pod, namespace: default}, involvedObject: {kind: Pod, name: win-a}, source: {component: kubelet}}
---
{apiVersion: v1, kind: Event, metadata: {name: own, namespace: openshift-windows-machine-config-operator}, involvedObject: {kind: Deployment, name: x}}
---
{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}}}
---
{apiVersion: v1, kind: Node, metadata: {name: linux-a, labels: {kubernetes.io/os: linux}}}
`
	dir := t.TempDir()
	if _, err := Collect(t.Context(), source(t, text, noLogs), dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, namespace := range []string{"default", gather.OperatorNamespace} {
		files, err := os.ReadDir(filepath.Join(dir, "namespaces", namespace, "core", "events"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			got = append(got, f.Name())
		}
	}
	if want := []string{"agent-gone.yaml", "agent.yaml", "kubelet.yaml", "operator.yaml", "own.yaml"}; !slices.Equal(got, want) {
		t.Errorf("Events %q, want %q", got, want)
	}
}

// refusing is a cluster that refuses a kind: what it gives is collected, and the refusal is listed.
type refusing struct{ objects.Reader }

func (r refusing) Read(ctx context.Context, wants []objects.Want) (objects.Set, error) {
	set, err := r.Reader.Read(ctx, wants)
	set.Findings = append(set.Findings, bundle.Finding{Severity: bundle.SeverityError, Message: "the user cannot list secrets", Fix: "add the rule"})
	return set, err
}

func TestARefusedKindIsListed(t *testing.T) {
	s := source(t, "{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}}}", noLogs)
	s.Objects = refusing{s.Objects}
	dir := t.TempDir()
	summary, err := Collect(t.Context(), s, dir)
	all := whole(t, dir)
	if err != nil || summary.Nodes != 1 || !strings.Contains(all, "the user cannot list secrets (fix: add the rule)") || !strings.Contains(all, "no route to host") {
		t.Errorf("%v\n%s", err, all)
	}
}

// TestNothingIsWrittenOutsideOfTheFolder: the data may come from a cluster of others, whose names are not checked.
func TestNothingIsWrittenOutsideOfTheFolder(t *testing.T) {
	parent := t.TempDir()
	s := source(t, "{apiVersion: v1, kind: Node, metadata: {name: ../../../../out, labels: {kubernetes.io/os: windows}}}", noLogs)
	if _, err := Collect(t.Context(), s, filepath.Join(parent, "a", "b")); err == nil || !strings.Contains(err.Error(), "outside of the folder") {
		t.Error(err)
	}
	if found, err := filepath.Glob(filepath.Join(parent, "out*")); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
}

// TestLogsAreMaskedAsReportsAre: the log of a node and that of a Pod hold no more than the end of a log that a report has. In each of these lines
// hunter2 is a secret.
func TestLogsAreMaskedAsReportsAre(t *testing.T) {
	lines := []string{
		"first", "dial http://admin:hunter2@proxy.example.com:3128", "password=hunter2", `{"auths":{"quay.io":{"auth":"aHVudGVyMg== hunter2"}}}`, "run kubelet.exe --token hunter2",
		strings.Repeat("hunter2A", 8), "pass\x1b[0mword=hunter2", "\x1b]0;title\x07last",
	}
	text := `
{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: openshift-windows-machine-config-operator}, spec: {containers: [{name: manager}]}}
`
	logs := func(_ context.Context, path string, _ map[string]string, _ int64) ([]byte, error) {
		if strings.HasSuffix(path, "/ledger.json") {
			return []byte("{}"), nil
		}
		return []byte(strings.Join(lines, "\r\n")), nil
	}
	dir := t.TempDir()
	if _, err := Collect(t.Context(), source(t, text, logs), dir); err != nil {
		t.Fatal(err)
	}
	want := bundle.NewLogTail("kubelet", strings.Join(lines, "\n")).Lines
	for _, name := range []string{"nodes/win-a/logs/" + agentLog, "namespaces/" + gather.OperatorNamespace + "/pods/p/manager/manager/logs/current.log"} {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.Split(string(got), "\n")); diff != "" || strings.Contains(string(got), "hunter2") {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestACutLogBeginsWithAWholeLine: the rest of a line may lack the name of its secret.
func TestACutLogBeginsWithAWholeLine(t *testing.T) {
	text := "{apiVersion: v1, kind: Node, metadata: {name: win-a, labels: {kubernetes.io/os: windows}}}"
	logs := func(_ context.Context, path string, _ map[string]string, limit int64) ([]byte, error) {
		if strings.HasSuffix(path, "/ledger.json") {
			return []byte("{}"), nil
		}
		whole := "password=hunter2 " + strings.Repeat("x", int(limit)) + "\nlast\n"
		return []byte(whole[len(whole)-int(limit):]), nil
	}
	dir := t.TempDir()
	if _, err := Collect(t.Context(), source(t, text, logs), dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "nodes", "win-a", "logs", filepath.FromSlash(agentLog)))
	if err != nil || string(got) != "last\n" {
		t.Errorf("%.100q, %v", got, err)
	}
}

// TestTheTimeOfAForeignFolder: neither a link nor a file without an end is read for it.
func TestTheTimeOfAForeignFolder(t *testing.T) {
	at := "2026-01-01T12:00:00Z\n"
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte(at), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		write func(dir string) error
		want  bool
	}{
		"its own": {func(dir string) error { return os.WriteFile(filepath.Join(dir, CollectedFile), []byte(at), 0o600) }, true},
		"of an image": {func(dir string) error {
			below := filepath.Join(dir, "registry")
			return errors.Join(os.Mkdir(below, 0o700), os.WriteFile(filepath.Join(below, CollectedFile), []byte(at), 0o600))
		}, true},
		"a link outside": {func(dir string) error { return os.Symlink(outside, filepath.Join(dir, CollectedFile)) }, false},
		"much text": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, CollectedFile), []byte(at+strings.Repeat(" ", 1<<10)+"x"), 0o600)
		}, true},
		"a folder": {func(dir string) error { return os.Mkdir(filepath.Join(dir, CollectedFile), 0o700) }, false},
		"nothing":  {func(dir string) error { return os.Remove(dir) }, false},
	} {
		dir := t.TempDir()
		if err := tt.write(dir); err != nil {
			t.Fatal(err)
		}
		if got, ok := Collected(dir); ok != tt.want || ok && got.Format(time.RFC3339) != strings.TrimSpace(at) {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
	}
}

// TestWhatKubeletsMakeIsBounded: of a live cluster, Events and Pods are read in parts, and the log of a mirror pod is not asked for.
func TestWhatKubeletsMakeIsBounded(t *testing.T) {
	for _, w := range wantedObjects(gather.OperatorNamespace) {
		if (w.Kind == "Event" || w.Kind == "Pod") && !w.Bounded {
			t.Errorf("%s in %s is read whole", w.Kind, w.Namespace)
		}
	}
	text := `
{apiVersion: v1, kind: Pod, metadata: {name: operator, namespace: openshift-windows-machine-config-operator}, spec: {containers: [{name: manager}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: mirror, namespace: openshift-windows-machine-config-operator, annotations: {kubernetes.io/config.mirror: x}}, spec: {containers: [{name: slow}]}}
`
	var asked []string
	logs := func(_ context.Context, path string, _ map[string]string, _ int64) ([]byte, error) {
		asked = append(asked, path)
		return []byte("a\n"), nil
	}
	if _, err := Collect(t.Context(), source(t, text, logs), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || !strings.HasSuffix(asked[0], "/pods/operator/log") {
		t.Errorf("asked for %q", asked)
	}
}
