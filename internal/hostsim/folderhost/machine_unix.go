//go:build unix

package folderhost

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/bundle"
	"wmco/internal/hostsim/fixtures"
	"wmco/internal/hostsim/simulation"
)

// Machine is a host in a folder as selftest.Run tests it.
type Machine struct {
	fixtures.Simulated
	root    string
	options Options
	// opened, where set, is called with each host that is opened.
	opened func(*Host)
}

var _ selftest.Machine = Machine{}

// machineFolder is the folder in which clauses work.
const machineFolder = selftest.Root + `\work`

// NewMachine returns the host in the folder root.
func NewMachine(root string, options Options) Machine {
	return Machine{root: root, options: options}.withFixtures()
}

func (m Machine) withFixtures() Machine {
	m.Simulated = fixtures.Simulated{Reach: m.simulation, Open: m.open, Root: machineFolder}
	return m
}

func (m Machine) newHost() (*Host, error) {
	h, err := New(m.root, m.options)
	if err == nil && m.opened != nil {
		m.opened(h)
	}
	return h, err
}

// open opens the host as another process does, until the clause ends.
func (m Machine) open(t selftest.T) applier.Host {
	t.Helper()
	return m.openHost(t)
}

func (m Machine) simulation(t selftest.T) *simulation.Host {
	t.Helper()
	return m.openHost(t).Host
}

func (m Machine) openHost(t selftest.T) *Host {
	t.Helper()
	h, err := m.newHost()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// fileBefore has, beside the drive, what the host had before the self-test.
const fileBefore = "selftest.json"

// Prepare implements selftest.Machine. It boots the host: some clauses leave what ends with the next boot.
func (m Machine) Prepare(ctx context.Context) error {
	return m.with(func(h *Host) error {
		if err := m.recordBefore(ctx, h); err != nil {
			return err
		}
		if err := errors.Join(h.Restart(ctx), m.removeFolder()); err != nil {
			return err
		}
		if err := h.MakeDirectory(ctx, selftest.Root, bundle.AccessUsers); err != nil {
			return err
		}
		return h.MakeDirectory(ctx, machineFolder, bundle.AccessUsers)
	})
}

// recordBefore records what the host has, unless an earlier run has.
func (m Machine) recordBefore(ctx context.Context, h *Host) error {
	if _, err := h.tree.Lstat(fileBefore); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, err := selftest.ReadBefore(ctx, h)
	if err != nil {
		return err
	}
	text, err := json.Marshal(before)
	return errors.Join(err, h.tree.WriteFile(fileBefore, text, 0o600))
}

// recordedBefore returns what recordBefore has recorded, the zero value for nothing.
func recordedBefore(h *Host) (before selftest.Before, err error) {
	text, err := h.tree.ReadFile(fileBefore)
	if errors.Is(err, fs.ErrNotExist) {
		return before, nil
	}
	return before, errors.Join(err, json.Unmarshal(text, &before))
}

// Clean implements selftest.Machine. It boots the host where something given back waits for that.
func (m Machine) Clean(ctx context.Context) (removed []string, err error) {
	err = m.with(func(h *Host) error {
		before, err := recordedBefore(h)
		if err != nil {
			return err
		}
		// What programs of an interrupted run did ends with them.
		if err := h.Edit(ctx, forget); err != nil {
			return err
		}
		if removed, err = (selftest.Cleaner{Host: h, Folder: machineFolder, Before: before}).Clean(ctx); err != nil {
			return err
		}
		if _, missing := os.Stat(m.local(selftest.Root)); missing == nil {
			removed = append(removed, "folder "+selftest.Root)
		}
		if err := errors.Join(m.removeFolder(), m.bootIfPending(ctx, h)); err != nil {
			return err
		}
		if err := h.tree.Remove(fileBefore); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return removed, err
}

func (Machine) bootIfPending(ctx context.Context, h *Host) error {
	pending := false
	err := h.Look(ctx, func(s *simulation.State) {
		feature := s.Settings[simulation.SettingKey(bundle.KindFeature, selftest.Feature)]
		pending = s.NextHostName != "" || feature.Pending
	})
	if err != nil || !pending {
		return err
	}
	return h.Restart(ctx)
}

// forget removes what clauses script and their trusted CAs, and ends the programs that belong to no service.
func forget(s *simulation.State) {
	ours := func(path string) bool {
		return strings.HasPrefix(bundle.FoldPath(path), bundle.FoldPath(selftest.Root)+`\`)
	}
	s.Script.Services = maps.Clone(s.Script.Services)
	for _, name := range []string{selftest.ServiceA, selftest.ServiceB, selftest.ServiceC} {
		delete(s.Script.Services, name)
	}
	s.Script.DiskBytes = 0
	s.Script.Locked = slices.DeleteFunc(slices.Clone(s.Script.Locked), ours)
	s.Script.Probes = slices.DeleteFunc(slices.Clone(s.Script.Probes), func(p simulation.SilentProbe) bool {
		return strings.HasPrefix(p.Target, fixtures.TargetPrefix)
	})
	s.Processes = nil
	s.Facts.Networks = slices.DeleteFunc(slices.Clone(s.Facts.Networks), func(n bundle.HNSNetwork) bool { return n.Name == selftest.NetworkName })
	maps.DeleteFunc(s.Settings, func(_ string, x plan.Setting) bool { return x.Kind == bundle.KindTrustedCA && isOwnCA(x.Value) })
}

// isOwnCA reports whether a certificate, as DER, has a name of the self-test.
func isOwnCA(der string) bool {
	certificate, err := x509.ParseCertificate([]byte(der))
	return err == nil && strings.HasPrefix(certificate.Subject.CommonName, selftest.CertificateName)
}

func (m Machine) removeFolder() error { return os.RemoveAll(m.local(selftest.Root)) }

func (m Machine) with(use func(*Host) error) error {
	h, err := m.newHost()
	if err != nil {
		return err
	}
	return errors.Join(use(h), h.Close())
}

// Skips implements selftest.Machine.
func (Machine) Skips() map[string]string {
	skips := fixtures.Skips()
	skips["the lock of a process that has ended is free"] = "one process alone uses this simulated host; TestFolderHostContract ends another one"
	return skips
}

// System implements selftest.Machine.
func (m Machine) System(ctx context.Context) (s result.System, err error) {
	err = m.with(func(h *Host) error {
		facts, err := h.Facts(ctx)
		s = result.System{OSBuild: facts.OSBuild, StandIn: "simulation"}
		return err
	})
	return s, err
}

// local returns the path of a Windows path on this system.
func (m Machine) local(path string) string {
	return filepath.Join(m.root, "C", filepath.FromSlash(strings.ReplaceAll(path[len(simulation.Drive):], `\`, "/")))
}

// MakeReadOnly implements selftest.OtherPrograms.
func (m Machine) MakeReadOnly(t selftest.T, path string) {
	info, err := os.Stat(m.local(path))
	if err == nil {
		err = os.Chmod(m.local(path), info.Mode().Perm()&^0o222)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// MakeLink implements selftest.LinkMaker.
func (m Machine) MakeLink(t selftest.T, path, folder string) {
	if err := os.Symlink(m.local(folder), m.local(path)); err != nil {
		t.Fatal(err)
	}
}

// OpenToAll implements selftest.AccessOpener.
func (m Machine) OpenToAll(t selftest.T, path string) {
	err := os.WriteFile(m.local(path), nil, 0o600)
	if err == nil {
		err = os.Chmod(m.local(path), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// MakeFile implements selftest.FileMaker. The folder's bits stand for what a file inherits.
func (m Machine) MakeFile(t selftest.T, path string) {
	folder, err := os.Stat(filepath.Dir(m.local(path)))
	if err == nil {
		err = os.WriteFile(m.local(path), nil, 0o600)
	}
	if err == nil {
		err = os.Chmod(m.local(path), 0o600|folder.Mode().Perm()&0o044)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// PlantFolder implements selftest.Planter.
func (m Machine) PlantFolder(t selftest.T, path string) {
	err := os.MkdirAll(m.local(path), 0o755)
	if err == nil {
		err = os.Chmod(m.local(path), 0o755|foreign)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// UsersRead implements selftest.AccessReader.
func (m Machine) UsersRead(t selftest.T, path string) bool {
	info, err := os.Stat(m.local(path))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o004 != 0
}
