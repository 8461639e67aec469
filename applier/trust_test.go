package applier_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// planted is a machine on which a user, who is no administrator, left records before the first contact. They name a service
// of the host, and services and files of the user's own.
func planted(t *testing.T, files ...string) *machine {
	t.Helper()
	donor := newMachine()
	theirs := newNode().Changed(func(n *node) {
		spooler := n.Services[0]
		spooler.Name, spooler.Argv, spooler.Dependencies = "Spooler", []string{`C:\k\spoolsv.exe`}, nil
		n.Services = append(n.Services, spooler)
		n.Services[0].Logs = []bundle.Log{{Path: `C:\var\log\theirs.log`, Rotation: bundle.RotationAgent, Pattern: "theirs-*.log", SizeBytes: 1}}
		n.Files[`C:\k\evil.dll`], n.Programs[`C:\k\spoolsv.exe`] = "evil", "evil"
	})
	donor.mustApply(t, theirs)
	ledger, _ := donor.Contents(ledgerPath)
	donor = donor.interrupted(t, theirs.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "evil" }))
	journal, _ := donor.Contents(journalPath)
	m := newMachine()
	for _, path := range files {
		switch path {
		case ledgerPath:
			m.Plant(path, ledger)
		case journalPath:
			m.Plant(path, journal)
		default:
			m.Plant(path, "planted")
		}
	}
	spooler := plan.ServiceConfig{Name: "Spooler", Start: bundle.StartAuto, CommandLine: `C:\k\spoolsv.exe`}
	if err := errors.Join(m.PutService(t.Context(), spooler), m.Set(t.Context(), plan.Setting{Kind: bundle.KindVariable, Name: "HTTPS_PROXY", Value: "theirs", Present: true})); err != nil {
		t.Fatal(err)
	}
	return m
}

// interrupted returns a machine on which a run was killed after it had written its journal.
func (m *machine) interrupted(t *testing.T, n node) *machine {
	t.Helper()
	for step := 0; ; step++ {
		c := m.copy()
		if !c.applyCut(t, n, step) {
			t.Fatal("no cut leaves a journal")
		}
		if _, there := c.Contents(journalPath); there {
			c.Revive()
			return c
		}
	}
}

func TestRecordsThatAUserPlantedDoNotCount(t *testing.T) {
	t.Parallel()
	for _, files := range [][]string{{ledgerPath}, {journalPath}, {ledgerPath, journalPath, cachePath, records.FileConfirm, records.DirContents + `\x`, records.DirAside + `\x`}} {
		for name, do := range map[string]func(*testing.T, *machine) (applier.Outcome, error){
			"apply": func(t *testing.T, m *machine) (applier.Outcome, error) {
				return m.apply(t, newNode(), applier.Options{})
			},
			"repair": func(t *testing.T, m *machine) (applier.Outcome, error) { return m.repair(t.Context()) },
			"cleanup": func(t *testing.T, m *machine) (applier.Outcome, error) {
				return m.engine().Cleanup(t.Context(), applier.Options{})
			},
		} {
			t.Run(fmt.Sprint(name, " with ", len(files)), func(t *testing.T) {
				t.Parallel()
				m := planted(t, files...)
				if o := m.observe(t, newNode()); o.Interrupted != "" || o.Applied != "" || !strings.Contains(strings.Join(o.Notes, "\n"), plan.StateFolder+" is ignored") {
					t.Errorf("observed: %+v", o)
				}
				if o, err := do(t, m); err != nil {
					t.Fatalf("%v, %+v", err, o)
				}
				snap := m.Snapshot()
				if _, there := snap.Services["spooler"]; !there {
					t.Error("a service of the host was deleted")
				}
				if snap.Settings["variable https_proxy"].Value != "theirs" {
					t.Error("a variable of the host was unset")
				}
				m.keptAside(t, bundle.Base(plan.StateFolder)+`\`+bundle.Base(files[0]))
				if name == "apply" {
					fresh := newMachine()
					fresh.mustApply(t, newNode())
					delete(snap.Services, "spooler")
					delete(snap.Settings, "variable https_proxy")
					if _, evil := m.Contents(`C:\k\evil.dll`); evil || snap.Services["kubelet"].CommandLine != fresh.Snapshot().Services["kubelet"].CommandLine {
						t.Error("what the planted records say was done")
					}
					if infos, err := m.Stat(t.Context(), []string{plan.StateFolder, ledgerPath}); err != nil || !infos[0].IsTrusted() || !infos[1].IsTrusted() {
						t.Errorf("the own records are not trusted: %+v, %v", infos, err)
					}
				}
				if !slices.ContainsFunc(m.events, func(e protocol.Event) bool {
					return e.Event == protocol.EventNote && strings.Contains(e.Message, "set-aside")
				}) {
					t.Errorf("no note says where it is now: %+v", m.events)
				}
			})
		}
	}
}

// keptAside checks that something that was set aside is kept.
func (m *machine) keptAside(t *testing.T, end string) {
	t.Helper()
	for path := range m.Snapshot().Files {
		if strings.HasPrefix(path, records.DirAside+`\`) && strings.HasSuffix(path, end) {
			return
		}
	}
	t.Errorf("%s is not kept in %s: %v", end, records.DirAside, m.Snapshot().Files)
}

func TestADryRunLeavesPlantedRecords(t *testing.T) {
	t.Parallel()
	m := planted(t, ledgerPath, journalPath)
	m.Place(`C:\var\log\theirs.log`, bundle.AccessUsers, "not ours")
	before := m.Snapshot()
	if _, err := m.apply(t, newNode(), applier.Options{DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := m.engine().Repair(t.Context(), applier.Options{DryRun: true}); err != nil {
		t.Error(err)
	}
	if err := m.engine().LimitGrowth(t.Context()); err != nil {
		t.Error(err)
	}
	var refused *applier.RefusedError
	if err := m.engine().Confirm(t.Context(), bundle.Of(nil)); !errors.As(err, &refused) {
		t.Errorf("confirming: %v", err)
	}
	if diff := differs(before, m.Snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An older program may have taken over a folder with a record in it that another user owns.
func TestOneRecordOfAnotherUserDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, path := range []string{ledgerPath, journalPath, records.DirContents} {
		m := newMachine()
		m.mustApply(t, newNode())
		data, _ := m.Contents(path)
		m.Discard(path)
		if path == records.DirContents {
			m.PlantFolder(path)
		} else {
			m.Plant(path, data)
		}
		o := m.mustApply(t, newNode())
		if o.Result != protocol.ResultSame && o.Result != protocol.ResultApplied {
			t.Errorf("%s: %+v", path, o)
		}
		m.keptAside(t, bundle.Base(path))
		if o := m.observe(t, newNode()); !o.InSync || len(o.Notes) > 0 {
			t.Errorf("%s: %+v", path, o)
		}
	}
}

func TestAFolderThatAUserMadeIsSetAsideAtTheFirstContact(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*machine){
		"the folder of programs":     func(m *machine) { m.Plant(`C:\k\version.dll`, "evil") },
		"the folder around the logs": func(m *machine) { m.Plant(`C:\var\log\evil.dll`, "evil") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			plant(m)
			m.mustApply(t, newNode())
			for path, f := range m.Snapshot().Files {
				if f.Owner == plan.OwnerOther && !strings.HasPrefix(path, records.DirAside+`\`) {
					t.Errorf("%s is still the user's", path)
				}
			}
			m.keptAside(t, ".dll")
		})
	}
}

// TestAFolderThatAUserHoldsIsNotTaken: whoever has made a folder may have it open with the right to change its access. It is not taken for want of another
// one, and nothing is started from it.
func TestAFolderThatAUserHoldsIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`C:\k`, `C:\k\containerd`} {
		m := newMachine()
		if path != `C:\k` {
			m.PlaceFolder(`C:\k`)
		}
		m.Plant(path+`\theirs.exe`, "evil")
		if _, err := m.StartProcess(t.Context(), path+`\theirs.exe`); err != nil {
			t.Fatal(err)
		}
		if o, err := m.apply(t, newNode(), applier.Options{}); err == nil || !strings.Contains(err.Error(), "fix: end the programs") {
			t.Errorf("%s: %v, %+v", path, err, o)
		}
		if f := m.Snapshot().Files[path]; f.Owner != plan.OwnerOther {
			t.Errorf("%s was taken: %+v", path, f)
		}
		if s, there := m.Snapshot().Services["kubelet"]; there {
			t.Errorf("a service was made: %+v", s)
		}
	}
}

// TestAFolderThatAUserMakesDuringTheFirstApplyIsNotTaken: contents arrive for minutes after the roots were looked at.
func TestAFolderThatAUserMakesDuringTheFirstApplyIsNotTaken(t *testing.T) {
	t.Parallel()
	const made = plan.StateFolder + `\folder` + bundle.NewMark
	for i, path := range []string{`C:\k`, plan.RuntimeFolder, `C:\var`} {
		m, planted, moves := newMachine(), false, 0
		m.Faults.Before = func(op simulation.Operation) error {
			makes := op.Verb == simulation.VerbMake && op.Target == path
			if op.Verb == simulation.VerbMove && op.Target == made {
				makes = moves == i
				moves++
			}
			if makes && !planted {
				planted = true
				m.PlantFolder(path)
			}
			return nil
		}
		if o, err := m.apply(t, newNode(), applier.Options{}); err == nil || !planted {
			t.Errorf("%s: %+v, planted %t", path, o, planted)
		}
		if f, there := m.Snapshot().Files[path]; there && f.Owner != plan.OwnerOther {
			t.Errorf("%s was taken: %+v", path, f)
		}
		m.mustApply(t, newNode())
		for path, f := range m.Snapshot().Files {
			if f.Owner == plan.OwnerOther && !strings.HasPrefix(path, records.DirAside+`\`) {
				t.Errorf("%s is still the user's", path)
			}
		}
	}
}

// TestWhatAUserAddsDuringTheFirstApplyIsSetAside: after the roots were looked at, and before they have our access.
func TestWhatAUserAddsDuringTheFirstApplyIsSetAside(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(*machine) error
		plant  func(*machine)
		aside  string
	}{
		"a root": {func(*machine) error { return nil }, func(m *machine) { m.PlantFolder(`C:\k`) }, "-k"},
		"a library in a folder of the administrator": {
			func(m *machine) error {
				m.PlaceFolder(`C:\k`)
				return m.MakeDirectory(t.Context(), `C:\k`, plan.AccessOther)
			},
			func(m *machine) { m.Plant(`C:\k\pdh.dll`, "evil") }, "pdh.dll",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, planted := newMachine(), false
			if err := tt.before(m); err != nil {
				t.Fatal(err)
			}
			m.Faults.Before = func(op simulation.Operation) error {
				if !planted && op.Verb == simulation.VerbWrite && op.Target == journalPath {
					planted = true
					tt.plant(m)
				}
				return nil
			}
			m.mustApply(t, newNode())
			m.keptAside(t, tt.aside)
		})
	}
}

// On a host with a ledger, the roots are ours: a change of their owner is drift.
func TestAManagedFolderThatChangedItsOwnerIsTakenBack(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	for _, path := range []string{`C:\k`, `C:\k\etc\kubernetes`} { // no bundle names the second
		m.SetOwner(path, plan.OwnerOther)
	}
	if o := m.observe(t, n); o.InSync {
		t.Error("nothing differs")
	}
	if _, err := m.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, f := range m.Snapshot().Files {
		if f.Owner == plan.OwnerOther || f.Access == plan.AccessOther {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

func TestAPlantedFolderInARootGetsOurAccess(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.PlaceFolder(`C:\k`)
	m.PlantFolder(`C:\k\etc`)
	m.mustApply(t, newNode())
	if f := m.Snapshot().Files[`C:\k\etc`]; f.Owner != plan.OwnerAdmins || f.Access != bundle.AccessUsers {
		t.Errorf("%+v", f)
	}
}

// TestFilesOfUsersBesideProgramsAreSetAside: where an administrator or the existing operator has made the folder without an access of its own, users
// may have put a library there that our programs would load.
func TestFilesOfUsersBesideProgramsAreSetAside(t *testing.T) {
	t.Parallel()
	m := newMachine()
	for _, path := range []string{`C:\k`, `C:\k\cni`} {
		m.PlaceFolder(path)
		if err := m.MakeDirectory(t.Context(), path, plan.AccessOther); err != nil {
			t.Fatal(err)
		}
	}
	m.Place(`C:\k\of-the-administrator.txt`, plan.AccessOther, "kept")
	m.Plant(`C:\k\pdh.dll`, "evil")
	m.Plant(`C:\k\cni\version.dll`, "evil")
	m.PlaceLink(`C:\k\wtsapi32.dll`)
	m.SetOwner(`C:\k\wtsapi32.dll`, plan.OwnerOther)
	m.mustApply(t, newNode())
	for path, f := range m.Snapshot().Files {
		if f.Owner == plan.OwnerOther && !strings.HasPrefix(path, records.DirAside+`\`) {
			t.Errorf("%s is still the user's", path)
		}
	}
	m.keptAside(t, "pdh.dll")
	m.keptAside(t, "version.dll")
	m.keptAside(t, "wtsapi32.dll")
	if _, there := m.Contents(`C:\k\of-the-administrator.txt`); !there {
		t.Error("a file of the administrator was moved")
	}
	if f := m.Snapshot().Files[`C:\k`]; f.Access != bundle.AccessUsers {
		t.Errorf("%+v", f)
	}
}

// TestAnEmptyFolderThatUsersCouldOpenIsMadeAgain: whoever has it open can make it lead to a folder of theirs, and a kubelet runs static pods from it.
func TestAnEmptyFolderThatUsersCouldOpenIsMadeAgain(t *testing.T) {
	t.Parallel()
	const pods, full = `C:\k\pods`, `C:\k\containerd`
	for name, inside := range map[string]string{"empty": "", "with a file of theirs": pods + `\evil.yaml`} {
		m := newMachine()
		for _, path := range []string{`C:\k`, pods, full} {
			m.PlaceFolder(path)
			if err := m.MakeDirectory(t.Context(), path, plan.AccessOther); err != nil {
				t.Fatal(err)
			}
		}
		m.Faults.Before = func(op simulation.Operation) error {
			if inside != "" && op.Verb == simulation.VerbWrite && op.Target == journalPath {
				m.Plant(inside, "evil")
				inside = ""
			}
			return nil
		}
		m.mustApply(t, newNode().Changed(func(n *node) { n.Empty = []string{pods} }))
		m.keptAside(t, "-pods")
		files := m.Snapshot().Files
		if f := files[pods]; f.Access != bundle.AccessAdmins || f.Owner != plan.OwnerAdmins {
			t.Errorf("%s: %+v", name, f)
		}
		for path := range files {
			if strings.HasPrefix(path, records.DirAside+`\`) && strings.HasSuffix(path, "-containerd") {
				t.Errorf("%s: a folder with programs was moved", name)
			}
		}
	}
}

// TestTheFolderOfContainerdIsNotOfAUser: in C:\ProgramData every user may make it, or entries of one that an administrator has made, and containerd
// runs programs from it.
func TestTheFolderOfContainerdIsNotOfAUser(t *testing.T) {
	t.Parallel()
	const root = plan.RuntimeFolder + `\root`
	for name, plant := range map[string]func(*machine){
		"the folder": func(m *machine) { m.Plant(root+`\opt\bin\evil.exe`, "evil") },
		"one in it":  func(m *machine) { m.PlaceFolder(plan.RuntimeFolder); m.Plant(root+`\opt\bin\evil.exe`, "evil") },
		"a link":     func(m *machine) { m.PlaceLink(plan.RuntimeFolder) },
		"one to add to": func(m *machine) {
			m.PlaceFolder(plan.RuntimeFolder)
			if err := m.MakeDirectory(t.Context(), plan.RuntimeFolder, plan.AccessOther); err != nil {
				t.Fatal(err)
			}
		},
		"none": func(*machine) {},
	} {
		m := newMachine()
		plant(m)
		m.mustApply(t, newNode())
		files := m.Snapshot().Files
		if f := files[plan.RuntimeFolder]; f.Kind != plan.FileDirectory || f.Owner != plan.OwnerAdmins || f.Access != bundle.AccessAdmins {
			t.Errorf("%s: %+v", name, f)
		}
		if f, there := files[root]; there {
			t.Errorf("%s: %+v", name, f)
		}
		if name != "none" && name != "a link" {
			m.keptAside(t, map[bool]string{true: "-root", false: "-containerd"}[name == "one in it"])
		}
		m.Place(root+`\image`, bundle.AccessAdmins, "of containerd")
		m.mustApply(t, newNode())
		if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, there := m.Contents(root + `\image`); !there {
			t.Errorf("%s: a cleanup has removed an image", name)
		}
	}
}

// TestProgramsBesideImagesAreNotOfAUser: where an administrator has made the folder of images by hand, users could add that of programs.
func TestProgramsBesideImagesAreNotOfAUser(t *testing.T) {
	t.Parallel()
	const root = plan.RuntimeFolder + `\root`
	for name, made := range map[string][]string{
		"the folder of programs": {plan.RuntimeFolder, root},
		"a program":              {plan.RuntimeFolder, root, root + `\opt`, root + `\opt\bin`},
	} {
		m := newMachine()
		for _, folder := range made {
			m.PlaceFolder(folder)
		}
		m.Plant(root+`\opt\bin\containerd-shim-runhcs-v1.exe`, "evil")
		m.Plant(root+`\images\layer`, "of an image, and of its owner")
		m.mustApply(t, newNode())
		if _, there := m.Contents(root + `\opt\bin\containerd-shim-runhcs-v1.exe`); there {
			t.Errorf("%s of a user is where containerd finds it", name)
		}
		if f := m.Snapshot().Files[plan.RuntimePrograms]; f.Owner == plan.OwnerOther {
			t.Errorf("%s: a user can add another one: %+v", name, f)
		}
		if _, there := m.Contents(root + `\images\layer`); !there {
			t.Errorf("%s: an image is set aside", name)
		}
	}
}

// entriesOutOfBounds are in records of ours, and no bundle can have them.
func TestRecordsWithEntriesOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	next := newNode().Changed(changes[2].change)
	for name, tt := range map[string]struct{ path, from, to string }{
		"a folder elsewhere":        {ledgerPath, `"folders": [`, `"folders": ["C:\\Windows\\Temp",`},
		"a variable of Windows":     {ledgerPath, `"fresh": [`, `"fresh": ["Path",`},
		"a file elsewhere":          {journalPath, `"path": "C:\\k\\kubelet.conf"`, `"path": "C:\\Windows\\kubelet.conf"`},
		"a service of no bundle":    {journalPath, `"name": "kubelet"`, `"name": "evil"`},
		"a setting of no bundle":    {journalPath, `"before": {`, `"before": {"settings": [{"kind": "variable", "name": "Path", "present": true}],`},
		"a setting of no kind":      {journalPath, `"before": {`, `"before": {"settings": [{"kind": "service", "name": "x", "present": true}],`},
		"a state of programs, else": {journalPath, `"before": {`, `"stale": {"paths": ["C:\\Windows"]}, "before": {`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			m.PlaceFolder(`C:\Windows\Temp`)
			if tt.path == journalPath {
				m = m.interrupted(t, next)
			}
			text, _ := m.Contents(tt.path)
			at := strings.LastIndex(text, tt.from) // what the bundle names comes first
			if at < 0 {
				t.Fatalf("%q is not in %s", tt.from, text)
			}
			m.Place(tt.path, bundle.AccessAdmins, text[:at]+tt.to+text[at+len(tt.from):])
			if o := m.observe(t, newNode()); len(o.Notes) == 0 {
				t.Errorf("nothing is noted: %+v", o)
			}
			m.mustApply(t, newNode())
			if snap := m.Snapshot(); snap.Files[`C:\Windows\Temp`].Kind != plan.FileDirectory {
				t.Error("a folder elsewhere was removed")
			}
		})
	}
}

// A service that another program runs under a name that was ours is not deleted.
func TestAServiceThatRunsAProgramElsewhereIsNotDeleted(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	editService(m, "kubelet", func(s *simulation.Service) { s.CommandLine = `"C:\Program Files\theirs\kubelet.exe" --x` })
	m.mustApply(t, n.Changed(func(n *node) { n.Services = n.Services[:1] }))
	if _, there := m.Snapshot().Services["kubelet"]; !there {
		t.Error("it was deleted")
	}
}
