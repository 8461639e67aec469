package hostsim_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/hostsim/simulation"
)

const (
	liveService = "kubelet"
	liveProgram = `C:\k\kubelet.exe`
	liveTarget  = "http://127.0.0.1:10248/healthz"
)

// TestProgramsThatReallyRun say themselves what they answer and when they end, on both disks.
func TestProgramsThatReallyRun(t *testing.T) {
	clock := hostsim.NewClock(hostsim.Epoch())
	folder, err := folderhost.Create(filepath.Join(t.TempDir(), "host"), folderhost.Options{Facts: hostsim.Facts(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	for name, h := range map[string]*simulation.Host{"memory": hostsim.NewMemory(hostsim.Facts(), clock).Host, "folder": folder.Host} {
		t.Run(name, func(t *testing.T) { checkLive(t, h) })
	}
}

func checkLive(t *testing.T, h *simulation.Host) {
	ctx := t.Context()
	live := func(change func(*simulation.Live)) {
		t.Helper()
		if err := h.Edit(ctx, func(s *simulation.State) {
			l := s.Live[liveService]
			l.Targets = []string{liveTarget}
			if p := s.Services[liveService].Processes; len(p) > 0 {
				l.Process = p[0]
			}
			change(&l)
			s.Live = map[string]simulation.Live{liveService: l}
		}); err != nil {
			t.Fatal(err)
		}
	}
	healthy := func(what string, want bool) {
		t.Helper()
		err := h.Probe(ctx, bundle.Probe{Kind: bundle.ProbeHTTP, Target: liveTarget})
		if (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	healthy("nobody is known to answer", true)
	live(func(*simulation.Live) {})
	healthy("the program does not run", false)
	check(t, h.WriteFile(ctx, liveProgram, bundle.AccessUsers, []byte("MZ")))
	check(t, h.PutService(ctx, plan.ServiceConfig{Name: liveService, CommandLine: liveProgram, Start: bundle.StartAuto}))
	check(t, h.StartService(ctx, liveService))
	healthy("it has just started", false)
	live(func(l *simulation.Live) { l.Answers = []string{liveTarget} })
	healthy("it answers", true)
	live(func(l *simulation.Live) { l.Ended = true })
	if got := status(t, h); got != plan.ServiceStopped {
		t.Errorf("after its end it is %s", got)
	}
	healthy("it has ended", false)
	check(t, h.StartByItself(ctx, liveService))
	if got := status(t, h); got != plan.ServiceRunning {
		t.Errorf("started again, it is %s", got)
	}
	healthy("the report of an earlier process does not count", false)
	var starts int
	check(t, h.Look(ctx, func(s *simulation.State) { starts = s.Services[liveService].Starts }))
	if starts != 2 {
		t.Errorf("%d starts", starts)
	}
}

func status(t *testing.T, h *simulation.Host) plan.ServiceStatus {
	t.Helper()
	states, err := h.Services(t.Context(), []string{liveService})
	check(t, err)
	return states[0].Status
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestProgramsReadAndWrite files, and meet the faults of the disk.
func TestProgramsReadAndWrite(t *testing.T) {
	h := hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch()))
	const path = `C:\var\lib\kubelet\pki\a.pem`
	if _, err := h.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		check(t, h.WriteFile(t.Context(), path, bundle.AccessAdmins, []byte(text)))
		if got, err := h.ReadFile(`C:\VAR\lib\kubelet\pki\A.pem`); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if n := len(h.Log()); n != 0 {
		t.Errorf("%d operations of the applier", n)
	}
	for range 2 {
		check(t, h.RemoveFile(path))
		if _, err := h.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removed: %v", err)
		}
	}
	if n := len(h.Log()); n != 0 {
		t.Errorf("%d operations of the applier", n)
	}
	check(t, h.Edit(t.Context(), func(s *simulation.State) { s.Script.Full = []string{`C:\var`} }))
	var file *applier.FileError
	if err := h.WriteFile(t.Context(), path, bundle.AccessAdmins, []byte("three")); !errors.As(err, &file) || file.Reason != applier.FileDiskFull {
		t.Errorf("a full disk: %v", err)
	}
	if err := h.WriteFile(t.Context(), `relative`, bundle.AccessAdmins, nil); err == nil {
		t.Error("a relative path")
	}
}
