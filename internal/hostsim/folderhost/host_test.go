//go:build unix

package folderhost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, h *Host, path string, access bundle.Access, text string) {
	t.Helper()
	ok(t, h.Write(t.Context(), path, access, strings.NewReader(text)))
}

// newFullHost returns a host with a file, a service and settings of most kinds.
func newFullHost(t *testing.T) (*Host, string) {
	t.Helper()
	root := t.TempDir()
	h := create(t, root)
	ok(t, h.MakeDirectory(t.Context(), `C:\k`, bundle.AccessUsers))
	put(t, h, `C:\k\kubelet.exe`, bundle.AccessUsers, "MZ")
	put(t, h, `C:\k\kubeconfig`, bundle.AccessAdmins, "secret")
	ok(t, h.PutService(t.Context(), plan.ServiceConfig{
		Name: "kubelet", Start: bundle.StartAuto, CommandLine: `C:\k\kubelet.exe --v=2`, Environment: []string{"A=b"},
		Recovery: bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 300},
	}))
	ok(t, h.StartService(t.Context(), "kubelet"))
	for _, x := range []plan.Setting{
		{Kind: bundle.KindVariable, Name: "Path", Value: `C:\k`},
		{Kind: bundle.KindTrustedCA, Name: string(bundle.Of([]byte{0x30, 0})), Value: "\x30\x00"},
		{Kind: bundle.KindAuthorizedKey, Name: selftest.KeyFingerprint, Value: selftest.KeyLine},
		{Kind: bundle.KindRoute, Name: "169.254.169.254/32", Value: bundle.ViaDefault},
		{Kind: bundle.KindFeature, Name: "Containers"},
		{Kind: bundle.KindFirewall, Name: "kubelet", Value: "TCP/10250"},
		{Kind: bundle.KindExclusion, Name: `C:\k\containerd.exe`},
		{Kind: bundle.KindPolicy, Name: bundle.PolicyUpdates, Value: bundle.UpdatesNotInstalled},
		{Kind: bundle.KindHostName, Name: bundle.Computer, Value: "win-1"},
	} {
		x.Present = true
		ok(t, h.Set(t.Context(), x))
	}
	return h, root
}

func snapshot(t *testing.T, h *Host) simulation.Snapshot {
	t.Helper()
	s, err := h.Snapshot(t.Context())
	ok(t, err)
	return s
}

func TestStateOutlivesProcess(t *testing.T) {
	t.Parallel()
	h, root := newFullHost(t)
	if diff := cmp.Diff(snapshot(t, h), snapshot(t, reopen(t, root)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestFilesOfHost(t *testing.T) {
	t.Parallel()
	_, root := newFullHost(t)
	var got []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		got = append(got, fmt.Sprint(info.Mode(), " ", path))
		return err
	})
	ok(t, err)
	want := []string{
		"drwx------ .machine",
		"-rw------- .machine/authorized keys.json",
		"-rw------- .machine/behaviour.json",
		"drwx------ .machine/certificates",
		"-rw------- .machine/certificates/sha256-" + strings.TrimPrefix(string(bundle.Of([]byte{0x30, 0})), "sha256:") + ".der",
		"-rw------- .machine/endpoints.json",
		"-rw------- .machine/exclusions.json",
		"-rw------- .machine/facts.json",
		"-rw------- .machine/features.json",
		"-rw------- .machine/firewall.json",
		"-rw------- .machine/machine.json",
		"-rw------- .machine/policies.json",
		"-rw------- .machine/processes.json",
		"-rw------- .machine/routes.json",
		"drwx------ .machine/services",
		"-rw------- .machine/services/kubelet.json",
		"-rw------- .machine/variables.json",
		"drwxr-xr-x C",
		"drwxr-xr-x C/k",
		"-rw------- C/k/kubeconfig",
		"-rw-r--r-- C/k/kubelet.exe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRebootAppliesPendingSettings(t *testing.T) {
	t.Parallel()
	h, root := newFullHost(t)
	before, err := h.Facts(t.Context())
	ok(t, err)
	ok(t, h.Reboot(t.Context(), "features"))
	h = reopen(t, root)
	after, err := h.Facts(t.Context())
	ok(t, err)
	if after.BootTime == before.BootTime {
		t.Error("the boot time is the same")
	}
	want := before
	want.HostName, want.Features = "win-1", []string{"Containers"}
	if diff := cmp.Diff(want, after, cmpopts.IgnoreFields(bundle.Facts{}, "BootTime")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	states, err := h.Services(t.Context(), []string{"kubelet"})
	ok(t, err)
	if states[0].Status != plan.ServiceRunning {
		t.Errorf("kubelet is %s", states[0].Status)
	}
}

func TestBehaviourEditedByHand(t *testing.T) {
	t.Parallel()
	h, root := newFullHost(t)
	behaviour := filepath.Join(root, ".machine", "behaviour.json")
	script := `{"services": {"kubelet": {"needs": [{"file": "C:\\k\\kubelet.conf", "lacks": "bad"}], "stop": "hangs"}},
		"probes": [{"target": "127.0.0.1:9182", "unless": [{"file": "C:\\k\\tls.crt"}]}]}`
	ok(t, os.WriteFile(behaviour, []byte(script), 0o600))
	exporter := bundle.Probe{Kind: bundle.ProbeTCP, Target: "127.0.0.1:9182"}
	ok(t, h.StopService(t.Context(), "kubelet"))
	put(t, h, `C:\k\kubelet.conf`, bundle.AccessUsers, "bad")
	var refusal *applier.ServiceError
	if err := h.StartService(t.Context(), "kubelet"); !errors.As(err, &refusal) {
		t.Errorf("the kubelet started with a bad configuration: %v", err)
	}
	put(t, h, `C:\k\kubelet.conf`, bundle.AccessUsers, "good")
	ok(t, h.StartService(t.Context(), "kubelet"))
	if err := h.Probe(t.Context(), exporter); !errors.Is(err, simulation.ErrSilent) {
		t.Errorf("got %v", err)
	}
	put(t, h, `C:\k\tls.crt`, bundle.AccessUsers, "certificate")
	ok(t, h.Probe(t.Context(), exporter))
	if data, err := os.ReadFile(behaviour); err != nil || string(data) != script {
		t.Errorf("the edited file was changed to: %s (%v)", data, err)
	}
	ok(t, os.WriteFile(behaviour, []byte(`{"probs": []}`), 0o600))
	if _, err := h.Facts(t.Context()); err == nil || !strings.Contains(err.Error(), ".machine/behaviour.json") {
		t.Errorf("a misspelt behaviour: %v", err)
	}
}

func TestHostStaysInItsFolder(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	h := create(t, root)
	ok(t, os.WriteFile(filepath.Join(outside, "file"), []byte("outside"), 0o600))
	ok(t, os.Symlink(outside, filepath.Join(root, "C", "link")))
	ok(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(root, "C", "file")))
	for _, path := range []string{`C:\link\file`, `C:\file`, `C:\..\..\file`, `C:\k/../../file`, `C:file`, `D:\file`, `\\server\share\file`, ""} {
		if f, err := h.Open(t.Context(), path); err == nil {
			data, _ := io.ReadAll(f)
			t.Errorf("%s was opened: %s", path, data)
		}
		if err := h.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("new")); err == nil {
			t.Errorf("%s was written", path)
		}
		if err := h.MakeDirectory(t.Context(), path+`\sub`, bundle.AccessUsers); err == nil {
			t.Errorf("%s was created as a folder", path)
		}
		_ = h.Remove(t.Context(), path) // may remove the link itself
	}
	if data, err := os.ReadFile(filepath.Join(outside, "file")); err != nil || string(data) != "outside" {
		t.Errorf("the file outside now holds %q: %v", data, err)
	}
}

func TestCreateAndNewErrors(t *testing.T) {
	t.Parallel()
	_, root := newFullHost(t)
	if _, err := Create(root, Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("a second host in one folder: %v", err)
	}
	if _, err := New(t.TempDir(), Options{}); err == nil {
		t.Error("an empty folder was opened")
	}
	if _, err := New(filepath.Join(root, "none"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}
