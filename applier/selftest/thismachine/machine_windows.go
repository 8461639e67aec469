package thismachine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/winhost"
	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/inspect"
	"wmco/bundle"
	"wmco/bundle/preflight"
)

// Folders below selftest.Root: the fixture's, and the one in which services write what they were started with.
const (
	folderWork = selftest.Root + `\work`
	folderSeen = selftest.Root + `\seen`
)

// Machine is this Windows. It needs the rights of an administrator.
type Machine struct {
	// Wine is true if Wine is in the place of Windows.
	Wine bool
}

var _ selftest.Machine = Machine{}

// Host implements selftest.Fixture.
func (m Machine) Host(selftest.T) applier.Host { return m.host() }

// host returns this host with short limits for programs that hang on purpose.
func (m Machine) host() *winhost.Host {
	h := winhost.New(winhost.Options{Wine: m.Wine})
	h.Limits.Start, h.Limits.Stop, h.Limits.Exit = 30*time.Second, 5*time.Second, 5*time.Second
	h.Limits.Delete, h.Limits.Poll = 3*time.Second, 10*time.Millisecond
	return h
}

// Folder implements selftest.Fixture.
func (Machine) Folder() string { return folderWork }

// Prepare implements selftest.Machine.
func (m Machine) Prepare(ctx context.Context) error {
	if err := m.keep(ctx); err != nil {
		return err
	}
	for _, f := range []string{folderWork, folderSeen} {
		if err := removeAll(ctx, f); err != nil {
			return err
		}
	}
	h := m.host()
	if err := h.MakeDirectory(ctx, selftest.Root, bundle.AccessUsers); err != nil {
		return err
	}
	if err := h.MakeDirectory(ctx, folderWork, bundle.AccessUsers); err != nil {
		return err
	}
	return os.Mkdir(folderSeen, 0o755)
}

// removalLimit is how long the file of a program that has ended may still be open: scanners read what has just been run.
const removalLimit = 15 * time.Second

// removeAll removes a folder with all that is in it.
func removeAll(ctx context.Context, path string) error {
	limited, cancel := context.WithTimeout(ctx, removalLimit)
	defer cancel()
	for {
		clearReadOnly(path)
		err := os.RemoveAll(path)
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Values of selftest.RegistryKey: 1 for what was missing before the run.
const (
	valueNoFolder  = "StateFolderMissing"
	valueNoFeature = "FeatureMissing"
)

// keep records what the run finds, before it changes anything. What an earlier run has recorded stays.
func (m Machine) keep(ctx context.Context) error {
	err := hklm.WithKey(selftest.RegistryKey, registry.QUERY_VALUE, func(registry.Key) error { return nil })
	if !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	infos, err := m.host().Stat(ctx, []string{plan.StateFolder})
	if err != nil {
		return err
	}
	feature, err := m.feature(ctx)
	if err != nil {
		return err
	}
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, selftest.RegistryKey, registry.SET_VALUE)
	if err != nil {
		return fmt.Errorf(`creating HKLM\%s: %w`, selftest.RegistryKey, err)
	}
	missing := map[string]bool{valueNoFolder: infos[0].Kind == plan.FileAbsent, valueNoFeature: !feature.Present && !feature.Pending}
	for name, is := range missing {
		if is {
			err = errors.Join(err, key.SetDWordValue(name, 1))
		}
	}
	return errors.Join(err, key.Close())
}

func (m Machine) feature(ctx context.Context) (plan.Setting, error) {
	have, err := m.host().Settings(ctx, []plan.Setting{{Kind: bundle.KindFeature, Name: selftest.Feature}})
	if err != nil {
		return plan.Setting{}, err
	}
	return have[0], nil
}

// Clean implements selftest.Machine.
func (m Machine) Clean(ctx context.Context) (removed []string, err error) {
	ended, err := endPrograms()
	removed, failed := m.cleaner().Clean(ctx)
	if ended > 0 {
		removed = append(removed, bundle.Count(ended, "program"))
	}
	roots, rootsErr := removeRoots()
	if roots > 0 {
		removed = append(removed, bundle.Count(roots, "trusted CA"))
	}
	err = errors.Join(err, failed, rootsErr)
	if _, missing := os.Lstat(selftest.Root); missing == nil {
		removed = append(removed, "folder "+selftest.Root)
		err = errors.Join(err, removeAll(ctx, selftest.Root))
	}
	given, failed := m.giveBack(ctx)
	return append(removed, given...), errors.Join(err, failed)
}

func (m Machine) cleaner() selftest.Cleaner {
	c := selftest.Cleaner{Host: m.host(), Folder: folderWork}
	if m.Wine {
		// Its firewall and its routes cannot be asked (Skips).
		c.Without = []bundle.EntryKind{bundle.KindFirewall, bundle.KindRoute}
	}
	return c
}

// giveBack restores what keep has recorded, and forgets the record.
func (m Machine) giveBack(ctx context.Context) (removed []string, err error) {
	missing := func(name string) bool {
		var is uint64
		err := hklm.WithKey(selftest.RegistryKey, registry.QUERY_VALUE, func(k registry.Key) (err error) {
			is, _, err = k.GetIntegerValue(name)
			return err
		})
		return err == nil && is == 1
	}
	h := m.host()
	if missing(valueNoFolder) {
		err = errors.Join(h.Remove(ctx, plan.LockFile), h.Remove(ctx, plan.StateFolder))
	}
	if missing(valueNoFeature) {
		feature, failed := m.feature(ctx)
		err = errors.Join(err, failed)
		if feature.Present && feature.Pending {
			removed = append(removed, "pending feature "+selftest.Feature)
			err = errors.Join(err, h.Set(ctx, plan.Setting{Kind: bundle.KindFeature, Name: selftest.Feature}))
		}
	}
	if err != nil {
		return removed, err
	}
	failed := registry.DeleteKey(registry.LOCAL_MACHINE, selftest.RegistryKey)
	if errors.Is(failed, registry.ErrNotExist) {
		return removed, nil
	}
	return removed, failed
}

// System implements selftest.Machine.
func (m Machine) System(ctx context.Context) (selftest.System, error) {
	var s selftest.System
	facts, err := m.host().Facts(ctx)
	if err != nil {
		return s, err
	}
	s.OSBuild = facts.OSBuild
	if m.Wine {
		s.StandIn = "Wine"
	}
	var w preflight.Machine
	err = inspect.ReadVersion(&w)
	if w.Update > 0 && strings.Count(s.OSBuild, ".") == 2 {
		s.OSBuild = fmt.Sprintf("%s.%d", s.OSBuild, w.Update)
	}
	s.Edition, s.Locale = strings.TrimSpace(w.Edition+" "+w.Installation), w.Locale
	s.Account, _ = account()
	return s, err
}

// account says as what kind of account this process runs.
func account() (string, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	if user.User.Sid.IsWellKnown(windows.WinLocalSystemSid) {
		return "SYSTEM", nil
	}
	admins, err := windows.CreateWellKnownSid(windows.WinBuiltinAdministratorsSid)
	if err != nil {
		return "", err
	}
	if member, err := windows.Token(0).IsMember(admins); err != nil || !member {
		return "user", err
	}
	return "administrator", nil
}
