package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/test/testenv/readonly"
)

// docLine is a command of this program in an indented block of a document: up to its comment, a pipe or a redirection.
var docLine = regexp.MustCompile(`(?m)^ {4,}(?:\./|bin/)?wmco ([a-z][^#|>\n]*)`)

// placeholderApplied is a command that applies deploy as it stands; folders below it have no image.
var placeholderApplied = regexp.MustCompile(`-k deploy(?:[^/]|$)`)

// docNode is the name of a Windows node in the documents, clusterNode that of the example cluster.
const (
	docNode     = "winworker-x7k2p"
	clusterNode = "ip-10-0-140-21.eu-central-1.compute.internal"
)

// docFolder is a folder with everything that the documents name, and a kubeconfig of an API server that serves the example cluster of
// a platform.
func docFolder(t *testing.T, platform string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	clusters := filepath.Join(root, "golden", "clusters")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	must(os.Mkdir(filepath.Join(dir, "windows"), 0o755))
	for to, from := range map[string]string{
		"must-gather.local.1234": filepath.Join(clusters, "mustgather"), "must-gather": filepath.Join(clusters, "mustgather"),
		"bin/payload": filepath.Join(root, "golden", "payload"), "my-mirrors.yaml": filepath.Join(root, "docs", "gitops", "example", "config", "mirrors.yaml"),
		"clusters": clusters, "facts.json": filepath.Join(root, "golden", "facts", "aws.json"),
	} {
		must(os.Symlink(from, filepath.Join(dir, to)))
	}
	must(os.WriteFile(filepath.Join(dir, "windows", "golden.yaml"), []byte("from: [../clusters/common, ../clusters/aws]\n"), 0o600))
	for _, key := range []string{"key.pub", "windows-key.pub"} {
		must(os.WriteFile(filepath.Join(dir, key), []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl admin\n"), 0o600))
	}
	server := httptest.NewServer(&readonly.API{Objects: docCluster(t, platform)})
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig))
	t.Setenv("KUBECONFIG", kubeconfig)
	return dir
}

// docCluster is the example cluster with the names of the documents.
func docCluster(t *testing.T, platform string) []unstructured.Unstructured {
	t.Helper()
	var list []unstructured.Unstructured
	for _, o := range clusterObjects(t, "common", platform) {
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		var renamed unstructured.Unstructured
		if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(clusterNode), []byte(docNode)), &renamed.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, renamed)
	}
	return list
}

// TestTheCommandLinesOfTheDocumentsWork runs what README and docs tell people to type, as it stands. Lines that reach hosts are only
// parsed.
func TestTheCommandLinesOfTheDocumentsWork(t *testing.T) {
	for platform, lines := range docLines(t) {
		t.Run(platform, func(t *testing.T) { tryDocLines(t, platform, lines) })
	}
}

// tryDocLines runs command lines, each with its document, in the example cluster of a platform.
func tryDocLines(t *testing.T, platform string, lines map[string]string) {
	t.Helper()
	t.Chdir(docFolder(t, platform))
	now := func() time.Time { return time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC) }
	try := func(args ...string) (int, string) {
		var out, errOut bytes.Buffer
		status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: now, version: "0.1.0"}, args)
		return status, errOut.String()
	}
	if status, errOut := try("golden", "update", "windows"); status != cli.ExitDone {
		t.Fatalf("golden update: %d: %s", status, errOut)
	}
	for line, file := range lines {
		args := strings.Fields(line)
		if err := parses(args); err != nil {
			t.Errorf("%s: wmco %s: %v", file, line, err)
			continue
		}
		if strings.Contains(line, "--host ") || args[0] == "operator" || args[0] == "gather" || strings.Contains(line, "--watch") {
			continue
		}
		if status, errOut := try(args...); status != cli.ExitDone && status != cli.ExitDiffers {
			t.Errorf("%s: wmco %s: status %d\n%s", file, line, status, errOut)
		}
	}
}

// docLines are the command lines of README and docs, each with its document, by the platform that the document is about.
func docLines(t *testing.T) map[string]map[string]string {
	t.Helper()
	files := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/gitops/*.md", "../../docs/platforms/*.md", "../../docs/runbooks/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	lines, count := map[string]map[string]string{}, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "cli.md" { // generated: its examples are those of the commands
			continue
		}
		for _, match := range docLine.FindAllStringSubmatch(string(text), -1) {
			platform := docPlatform(file)
			if lines[platform] == nil {
				lines[platform] = map[string]string{}
			}
			lines[platform][strings.TrimSpace(match[1])] = filepath.Base(file)
			count++
		}
	}
	if count < 20 {
		t.Fatalf("%d lines", count)
	}
	return lines
}

// docPlatform is the platform that a page of docs/platforms is about; other documents show AWS.
func docPlatform(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".md")
	is := func(p bundle.Platform) bool { return strings.EqualFold(string(p), name) }
	if filepath.Base(filepath.Dir(file)) == "platforms" && slices.ContainsFunc(bundle.Platforms(), is) {
		return name
	}
	return "aws"
}

// TestTheDocumentsInstallAnImageThatExists: the manifests of a clone name no image, so nothing is told to apply them as they stand.
func TestTheDocumentsInstallAnImageThatExists(t *testing.T) {
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/platforms/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if placeholderApplied.Match(text) {
				t.Errorf("%s applies deploy, whose image is a placeholder", filepath.Base(file))
			}
		}
	}
}
