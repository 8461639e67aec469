package consumers

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

const repository = "../../.."

func TestMain(m *testing.M) {
	// Kubernetes also logs the errors that it returns.
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	os.Exit(m.Run())
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Every file of every golden bundle is accepted by the program that reads it on the node.
func TestConsumersAcceptGoldens(t *testing.T) {
	trees, err := filepath.Glob(filepath.Join(renderCases(t), "*", "want"))
	if err != nil || len(trees) < 30 {
		t.Fatalf("golden/cases has %d cases, %v", len(trees), err)
	}
	met := checkTrees(t, trees)
	for _, c := range All() {
		if !met[c.Name] && !c.Platform {
			t.Errorf("no golden holds a file that %s reads: %v", c.Name, c.Patterns)
		}
	}
}

// renderedCases is the name of the folder that renderCases returns.
const renderedCases = "cases"

// renderCases writes the nodes of each case of golden/cases whole, to CASE/want/NODE of the folder that it returns.
func renderCases(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), renderedCases)
	render := exec.CommandContext(t.Context(), "go", "run", "./internal/build/goldencases", "golden/cases", out)
	render.Dir = repository
	if answer, err := render.CombinedOutput(); err != nil {
		t.Fatalf("rendering golden/cases: %v\n%s", err, answer)
	}
	return out
}

// Files written by hand, so that a check that refuses everything fails without goldens.
func TestConsumersAcceptTestdata(t *testing.T) {
	met := checkTrees(t, []string{"testdata/ok"})
	for _, c := range All() {
		if !met[c.Name] {
			t.Errorf("testdata/ok holds no file that %s reads: %v", c.Name, c.Patterns)
		}
	}
}

// Each folder has one file with one fault. The texts are those of the programs.
func TestFaultsAreRefused(t *testing.T) {
	faults := map[string]string{
		"cni-bad-policy":               `unknown field "NeedsEncap"`,
		"cni-bad-subnet":               "host-local",
		"cni-bad-version":              "cniVersion",
		"cni-not-json":                 "invalid character",
		"cni-unknown-field":            `unknown field "ipMask"`,
		"containerd-misspelt-key":      "max_concurrent_download",
		"containerd-misspelt-top":      "oom_scores",
		"containerd-old-version":       "Configuration migrated",
		"containerd-unknown-plugin":    `plugin "io.containerd.cri.v1.image" is not one of containerd's`,
		"cloud-conf-with-a-password":   `unknown field "aadClientSecret"`,
		"cloud-conf-not-managed":       "useManagedIdentityExtension",
		"credential-no-images":         "at least 1 item in matchImages is required",
		"credential-unknown-field":     `unknown field "matchImage"`,
		"exporter-unknown-cipher":      "unknown cipher",
		"exporter-unknown-field":       "field min_versio not found",
		"hosts-not-toml":               "expected",
		"kubeconfig-no-user":           `user "kubelet" was not found for context`,
		"kubeconfig-relative":          "is not an absolute path on a node",
		"kubeconfig-unknown-field":     `unknown field "servr"`,
		"kubelet-bad-quantity":         "systemReserved.memory",
		"kubelet-invalid":              "imageGCHighThresholdPercent",
		"kubelet-linux-only":           "singleProcessOOMKill is not supported on Windows",
		"kubelet-locked-gate":          "feature is locked to true",
		"kubelet-unknown-field":        `unknown field "evictionHards"`,
		"kubelet-unknown-gate":         "unrecognized feature gate: WinDRS",
		"kubelet-unknown-threshold":    "unsupported eviction signal nodefs.availible",
		"kubelet-unknown-type":         "cannot unmarshal string",
		"kube-proxy-bad-address":       "not a valid textual representation of an IP address",
		"kube-proxy-linux-mode":        `mode "iptables": Windows has only kernelspace`,
		"kube-proxy-unknown-field":     `unknown field "winkernel.networkname"`,
		"certificates-something-else":  "a X509 CRL among the certificates",
		"certificates-text-at-the-end": "data that is not PEM",
		"private-key-in-clear":         "must be masked",
		"pinned-credentials-in-clear":  "credentials must be masked",
		"pinned-credentials-no-digest": "containerd would pull registry.example.com/windows/base:ltsc2022",
		"pull-credentials-in-clear":    "credentials must be masked",
		"pull-credentials-unknown":     `unknown field "credsStore"`,
		"places-in-clear":              "credentials must be masked",
		"places-unknown":               `unknown field "open"`,
		"executables-in-clear":         "credentials must be masked",
		"executables-unknown":          `unknown field "rate"`,
		"pinned-images-no-digest":      "containerd would pull registry.example.com/windows/base:ltsc2022",
		"pinned-images-no-registry":    "containerd would pull docker.io/windows/base@sha256:",
	}
	entries, err := os.ReadDir("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			want, ok := faults[e.Name()]
			if !ok {
				t.Fatal("a fault that the table does not know")
			}
			files := findFiles(t, []string{filepath.Join("testdata/bad", e.Name())})
			if len(files) != 1 {
				t.Fatalf("%d files, want 1", len(files))
			}
			err := files[0].consumer.Check(t.Context(), files[0].contents, options(t))
			if errors.Is(err, ErrUnavailable) {
				t.Skip("skipped:", err)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
		})
	}
	if len(entries) != len(faults) {
		t.Errorf("%d folders in testdata/bad, %d faults in the table", len(entries), len(faults))
	}
}

// rendered is one or more files with the same contents.
type rendered struct {
	path     string
	contents []byte
	consumer Consumer
}

// checkTrees checks every file below a drive in the trees and returns the names of the consumers that read one.
func checkTrees(t *testing.T, trees []string) map[string]bool {
	t.Helper()
	met := map[string]bool{}
	for _, f := range findFiles(t, trees) {
		met[f.consumer.Name] = true
		name := filepath.ToSlash(f.path)
		if _, inCases, ok := strings.Cut(name, "/"+renderedCases+"/"); ok {
			name = inCases
		}
		t.Run(name, func(t *testing.T) {
			err := f.consumer.Check(t.Context(), f.contents, options(t))
			if errors.Is(err, ErrUnavailable) {
				t.Skip("skipped:", err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	return met
}

// findFiles returns the files below every folder C in the trees, equal ones once.
func findFiles(t *testing.T, trees []string) []rendered {
	t.Helper()
	var found []rendered
	seen := map[string]bool{}
	for _, tree := range trees {
		err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
			_, below, onDrive := strings.Cut(filepath.ToSlash(path), "/C/")
			if err != nil || entry.IsDir() || !onDrive {
				return err
			}
			consumer, ok := Find(below)
			if !ok {
				t.Errorf("%s: no consumer reads this file; add one to All", path)
				return nil
			}
			contents, err := os.ReadFile(path)
			sum := sha256.Sum256(contents)
			if key := consumer.Name + string(sum[:]); err == nil && !seen[key] {
				seen[key] = true
				found = append(found, rendered{path: path, contents: contents, consumer: consumer})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{Containerd: os.Getenv("WMCO_CONTAINERD"), Scratch: t.TempDir()}
}
