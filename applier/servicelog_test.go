package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
)

const kubeletLog = `C:\var\log\kubelet\kubelet.log`

// withKubeletLog is a node whose kubelet writes a log, as in its bundle: with a limit of its size, or as a flag of kube-log-runner.
func withKubeletLog(limited bool) func(*node) {
	return func(n *node) {
		for i := range n.Services {
			switch {
			case n.Services[i].Name != "kubelet":
			case limited:
				n.Services[i].Logs = []bundle.Log{{Path: kubeletLog, Rotation: bundle.RotationWrapper, SizeBytes: 1 << 20}}
			default:
				n.Services[i].Argv = append(n.Services[i].Argv, "-log-file="+kubeletLog)
			}
		}
	}
}

// writeKubeletLog writes the log as the kubelet does, with a secret, and more than is read of it.
func (m *machine) writeKubeletLog(t *testing.T) {
	t.Helper()
	if err := errors.Join(m.MakeDirectory(t.Context(), `C:\var`, bundle.AccessUsers), m.MakeDirectory(t.Context(), `C:\var\log`, bundle.AccessUsers), m.MakeDirectory(t.Context(), `C:\var\log\kubelet`, bundle.AccessUsers)); err != nil {
		t.Fatal(err)
	}
	m.Place(kubeletLog, bundle.AccessUsers, "password="+strings.Repeat("hunter2 ", 4<<10)+"\nflag provided but not defined\nvia http://u:hunter2@proxy: exit 1\n")
}

var wantLog = bundle.LogTail{Service: "kubelet", Lines: []string{"flag provided but not defined", "via http://****:****@proxy: exit 1"}}

func TestARollbackHasTheEndOfTheLogOfTheService(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]bool{"its size is limited": true, "its size is not limited": false} {
		for _, tt := range bad {
			m, n := badKubelet(t, tt.behaviour)
			m.writeKubeletLog(t)
			o, err := m.apply(t, n.Changed(tt.change).Changed(withKubeletLog(limited)), applier.Options{})
			if diff := cmp.Diff(wantLog, o.Log); diff != "" || o.Result != protocol.ResultRolledBack {
				t.Errorf("%s, %s: %v (-want +got):\n%s", name, tt.name, err, diff)
			}
			if strings.Contains(err.Error(), "flag provided") {
				t.Errorf("%s: the reason has the log too: %v", name, err)
			}
		}
	}
}

// unconfirmed is the error of a confirmation that blames a service.
type unconfirmed struct{ error }

func (unconfirmed) BlamedService() string { return "kubelet" }

func TestLogsThatSayNothingAboutARollback(t *testing.T) {
	t.Parallel()
	deny := func(err error) applier.Options {
		return applier.Options{Confirm: func(context.Context) error { return err }, ConfirmWithin: 1 << 40}
	}
	for name, tt := range map[string]struct {
		options applier.Options
		change  func(*machine)
		want    bundle.LogTail
	}{
		"a confirmation that blames the kubelet": {deny(unconfirmed{errors.New("no")}), func(*machine) {}, wantLog},
		"a confirmation that blames no service":  {deny(errors.New("no")), func(*machine) {}, bundle.LogTail{}},
		"a log that does not exist":              {deny(unconfirmed{errors.New("no")}), func(m *machine) { _ = m.Remove(context.Background(), kubeletLog) }, bundle.LogTail{}},
		"a log that is empty":                    {deny(unconfirmed{errors.New("no")}), func(m *machine) { m.Place(kubeletLog, bundle.AccessUsers, "") }, bundle.LogTail{}},
		"a log that is a link": {deny(unconfirmed{errors.New("no")}), func(m *machine) {
			m.Discard(kubeletLog)
			m.PlaceLink(kubeletLog)
		}, bundle.LogTail{}},
	} {
		m, n := newMachine(), newNode()
		m.mustApply(t, n)
		m.writeKubeletLog(t)
		tt.change(m)
		o, err := m.apply(t, n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "new" }).Changed(withKubeletLog(true)), tt.options)
		if diff := cmp.Diff(tt.want, o.Log); diff != "" || o.Result != protocol.ResultRolledBack {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestAnInterruptedRollbackKeepsTheLog of the service, which writes other lines when it is restored.
func TestAnInterruptedRollbackKeepsTheLog(t *testing.T) {
	t.Parallel()
	start, n := badKubelet(t, bad[0].behaviour)
	start.writeKubeletLog(t)
	next := n.Changed(bad[0].change).Changed(withKubeletLog(true))
	resumed := 0
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCutWithin(t, next, step) {
			break
		}
		if !m.readsRollback(t) {
			continue
		}
		m.Place(kubeletLog, bundle.AccessUsers, "it runs again\n")
		o, err := m.repair(t.Context())
		var back *applier.RolledBackError
		if !errors.As(err, &back) {
			t.Fatalf("step %d: %v", step, err)
		}
		resumed++
		if diff := cmp.Diff(wantLog, o.Log); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", step, diff)
		}
	}
	if resumed < 3 {
		t.Errorf("only %d cuts came while it was rolled back", resumed)
	}
}

// readsRollback reports whether the journal has a run that is being rolled back.
func (m *machine) readsRollback(t *testing.T) bool {
	t.Helper()
	text, _ := m.Contents(`C:\ProgramData\wmco\journal.json`)
	return strings.Contains(text, `"rolling back"`)
}
