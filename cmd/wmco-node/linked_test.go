//go:build !windows

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle/archive"
)

// linkedFile lists what the program for Windows links beside the standard library.
const linkedFile = "testdata/linked-windows.txt"

// banned are packages that a program on a node must not link. It opens no SSH connections and renders nothing; of the cluster it
// reads its own Node, without the clients and informers of every kind.
var banned = []string{
	"wmco/render", "wmco/render/mirrors", "wmco/templates", "wmco/internal/golden", "wmco/controller/inputs/desired", "wmco/controller/gather", "wmco/internal/hostsim/folderhost", "wmco/internal/hostsim/simulation",
	"testing", "golang.org/x/crypto/ssh", "github.com/pkg/sftp", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/discovery", "sigs.k8s.io/controller-runtime",
}

// maxStored is how large the program may be as it travels, in bytes.
const maxStored = 12 << 20

func TestLinkedForWindows(t *testing.T) {
	var got []string
	for line := range strings.Lines(forWindows(t, "list", "-deps", "-f", "{{.ImportPath}}\t{{.Standard}}\t{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", ".")) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		path, folder := fields[0], fields[2]
		if slices.ContainsFunc(banned, func(b string) bool {
			return path == b || strings.HasPrefix(path, b+"/") && !strings.HasPrefix(b, "wmco/")
		}) {
			t.Errorf("%s is linked", path)
		}
		if fields[1] == "true" {
			continue
		}
		got = append(got, path)
		seen(t, folder)
	}
	slices.Sort(got)
	want, err := os.ReadFile(linkedFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	diff := cmp.Diff(strings.Fields(string(want)), got)
	if *update {
		if err := os.WriteFile(linkedFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff != "" {
		t.Errorf("rewrite %s with -update (-want +got):\n%s", linkedFile, diff)
	}
}

// seen opens a folder of this module: the cache of go test knows what a test opens, and not what the go command does for it.
func seen(t *testing.T, folder string) {
	t.Helper()
	if folder == "" {
		return
	}
	if _, err := os.ReadDir(folder); err != nil {
		t.Fatal(err)
	}
}

// TestSizeForWindows builds the program for Windows, which takes a minute: make cross has compiled its packages, and sets WMCO_CROSS.
func TestSizeForWindows(t *testing.T) {
	if os.Getenv("WMCO_CROSS") == "" {
		t.Skip("it compiles everything for Windows: make cross runs it")
	}
	exe := filepath.Join(t.TempDir(), "wmco-node.exe")
	forWindows(t, "build", "-trimpath", "-ldflags=-s -w", "-o", exe, ".")
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	stored := len(archive.Compress(data))
	t.Logf("%.1f MB, %.1f MB as it travels", float64(len(data))/1e6, float64(stored)/1e6)
	if stored > maxStored {
		t.Errorf("%d bytes travel to every node, %d are allowed", stored, maxStored)
	}
}

// forWindows runs the go command for this package.
func forWindows(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return string(out)
}
