package applier_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim"
)

const publicKeys = "the public keys of the operator\n"

// withSigningKeys is a machine on which the operator has put its keys.
func withSigningKeys(t *testing.T) *machine {
	t.Helper()
	return applied(t, newNode().Changed(func(n *node) { n.Files[bundle.SigningKeysFile] = publicKeys }))
}

// tryApply applies a bundle, and returns what came of it.
func (m *machine) tryApply(t *testing.T, n node, o applier.Options, reset string) (applier.Outcome, error) {
	t.Helper()
	m.events = nil
	e := m.engine()
	e.Reset = reset
	return e.Apply(t.Context(), n.Manifest(t), reader(t, n, m.observe(t, n).Missing), o)
}

const refusesKeys = "the bundle has no signing keys and would remove C:\\k\\desired-state-keys.pem: until it is there again, the node agent accepts what no operator has signed; " +
	"render it with the cluster as input (--from cluster), which has them, or allow the removal with --remove-signing-keys"

// TestSigningKeysAreNotRemovedByTheWay: whoever renders without the cluster does not know them.
func TestSigningKeysAreNotRemovedByTheWay(t *testing.T) {
	for _, c := range []struct {
		name    string
		options applier.Options
		reset   string
		// note is the event where the file is removed.
		note, refused string
	}{
		{name: "a bundle without keys", refused: refusesKeys},
		{name: "a dry run of it", options: applier.Options{DryRun: true}, refused: refusesKeys},
		{name: "the removal is asked for", options: applier.Options{RemoveSigningKeys: true}},
		{name: "the host stops being its node", reset: "win-a", note: `C:\k\desired-state-keys.pem is removed: the host stops being node win-a`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := withSigningKeys(t)
			before := m.Snapshot()
			if o := m.observe(t, newNode()); o.InSync || !slices.Contains(o.Notes, "apply refuses this: "+refusesKeys) {
				t.Errorf("observed: %+v", o)
			}
			o, err := m.tryApply(t, newNode(), c.options, c.reset)
			if c.refused != "" {
				var refused *applier.RefusedError
				if !errors.As(err, &refused) || o.Message != c.refused {
					t.Errorf("%v, %+v", err, o)
				}
				after := m.Snapshot()
				delete(before.Files, records.FileCache)
				delete(after.Files, records.FileCache)
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the host was changed (-before +after):\n%s", diff)
				}
				return
			}
			if _, there := m.Contents(bundle.SigningKeysFile); err != nil || there {
				t.Errorf("%v, %+v, the keys are there: %t", err, o, there)
			}
			if c.note != "" && !slices.ContainsFunc(m.events, func(e protocol.Event) bool { return e.Event == protocol.EventNote && e.Message == c.note }) {
				t.Errorf("nothing is said: %+v", m.events)
			}
		})
	}
}

// TestKeysThatNoBundleBroughtStay, as all that is not managed.
func TestKeysThatNoBundleBroughtStay(t *testing.T) {
	m := applied(t, newNode())
	m.Place(bundle.SigningKeysFile, bundle.AccessAdmins, publicKeys)
	o, err := m.tryApply(t, newNode().Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "changed" }), applier.Options{}, "")
	if text, _ := m.Contents(bundle.SigningKeysFile); err != nil || o.Result != protocol.ResultApplied || text != publicKeys {
		t.Errorf("%v, %+v, %q", err, o, text)
	}
}

// TestARemovalOfSigningKeysThatWasInterruptedEnds: the next run has no flag, and does not have to ask again.
func TestARemovalOfSigningKeysThatWasInterruptedEnds(t *testing.T) {
	cuts := 0
	for step := 0; ; step += 4 {
		m := withSigningKeys(t)
		n := newNode().Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "changed" })
		missing := m.observe(t, n).Missing
		m.CutAt(step)
		if _, err := m.engine().Apply(t.Context(), n.Manifest(t), reader(t, n, missing), applier.Options{RemoveSigningKeys: true}); !errors.Is(err, hostsim.ErrCut) {
			break
		}
		cuts++
		m.Revive()
		if o, err := m.engine().Repair(t.Context(), applier.Options{}); err != nil {
			t.Errorf("cut at %d: %v, %+v", step, err, o)
		}
	}
	if cuts < 5 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestAServiceGetsOnlyAProgramThatIsThere: otherwise what ran before is stopped for one that cannot start.
func TestAServiceGetsOnlyAProgramThatIsThere(t *testing.T) {
	const program, kubelet = `C:\k\new\kubelet.exe`, `C:\k\kubelet.exe`
	with := func(argv ...string) func(*node) {
		return func(n *node) {
			i := slices.IndexFunc(n.Services, func(s bundle.Service) bool { return s.Name == "kubelet" })
			n.Services = slices.Clone(n.Services)
			n.Services[i].Argv = argv
		}
	}
	const refusal = `the service kubelet would run C:\k\new\kubelet.exe, which is neither on the host nor in the bundle; give the executables with --payload`
	for _, c := range []struct {
		name    string
		prepare func(*machine)
		change  func(*node)
		refused string
	}{
		{name: "the program is nowhere", change: with(program), refused: refusal},
		{name: "behind a wrapper", change: with(`C:\k\kube-log-runner.exe`, "-log-file", `C:\var\log\kubelet\kubelet.log`, program), refused: refusal},
		{name: "a folder has its name", prepare: func(m *machine) { m.Place(program+`\x`, bundle.AccessUsers, "") }, change: with(program), refused: refusal},
		{name: "it is on the host", prepare: func(m *machine) { m.Place(program, bundle.AccessUsers, "MZ") }, change: with(program)},
		{name: "the bundle brings it", change: func(n *node) {
			with(program)(n)
			n.Programs[program] = "another kubelet"
		}},
		{name: "the bundle removes it", change: func(n *node) {
			with(kubelet, "--other")(n)
			delete(n.Programs, kubelet)
		}, refused: strings.ReplaceAll(refusal, program, kubelet)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := applied(t, newNode())
			if c.prepare != nil {
				c.prepare(m)
			}
			n := newNode().Changed(c.change)
			before := m.Snapshot()
			notes := m.observe(t, n).Notes
			o, err := m.tryApply(t, n, applier.Options{}, "")
			if c.refused == "" {
				if err != nil || len(notes) > 0 {
					t.Errorf("%v, %+v, notes %q", err, o, notes)
				}
				return
			}
			if o.Result != protocol.ResultRefused || o.Message != c.refused || !slices.Contains(notes, "apply refuses this: "+c.refused) {
				t.Errorf("%v, %+v, notes %q", err, o, notes)
			}
			for name, s := range before.Services {
				if now := m.Snapshot().Services[name]; now.Status != s.Status || s.Status != plan.ServiceRunning {
					t.Errorf("%s was %s and is %s", name, s.Status, now.Status)
				}
			}
		})
	}
}
