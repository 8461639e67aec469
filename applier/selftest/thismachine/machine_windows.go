package thismachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier"
	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/applier/winhost"
	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/inspect"
	"wmco/bundle"
	"wmco/preflight"
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

// Skips implements selftest.Machine.
func (m Machine) Skips() map[string]string {
	if m.Wine {
		return SkipsOnWine()
	}
	return skipsEverywhere()
}

// Prepare implements selftest.Machine.
func (m Machine) Prepare(ctx context.Context) error {
	if err := m.recordBefore(ctx); err != nil {
		return err
	}
	h := m.host()
	if err := h.CreateDirectory(ctx, selftest.Root, bundle.AccessUsers); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := m.checkRoot(ctx); err != nil {
		return err
	}
	for _, f := range []string{folderWork, folderSeen} {
		if err := removeAll(ctx, f); err != nil {
			return err
		}
	}
	if err := h.MakeDirectory(ctx, folderWork, bundle.AccessUsers); err != nil {
		return err
	}
	return os.Mkdir(folderSeen, 0o755)
}

// checkRoot returns an error for a folder that another user of this machine has made.
func (m Machine) checkRoot(ctx context.Context) error {
	infos, err := m.host().Stat(ctx, []string{selftest.Root})
	if err != nil {
		return err
	}
	return selftest.CheckRoot(infos[0])
}

// removalLimit is how long the file of a program that has ended may still be open: scanners read what has just been
// run.
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

// valueBefore of selftest.RegistryKey is a selftest.Before as JSON.
const valueBefore = "Before"

// recordBefore records what the machine has before the run changes anything. What an earlier run has recorded stays.
func (m Machine) recordBefore(ctx context.Context) error {
	_, known, err := hklm.ReadText(selftest.RegistryKey, valueBefore)
	if err != nil || known {
		return err
	}
	before, err := selftest.ReadBefore(ctx, m.host())
	if err != nil {
		return err
	}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, selftest.RegistryKey, registry.SET_VALUE)
	if err != nil {
		return fmt.Errorf(`creating HKLM\%s: %w`, selftest.RegistryKey, err)
	}
	return errors.Join(key.SetStringValue(valueBefore, string(text)), key.Close())
}

// recordedBefore returns what recordBefore has recorded, the zero value for nothing.
func recordedBefore() (before selftest.Before, err error) {
	text, known, err := hklm.ReadText(selftest.RegistryKey, valueBefore)
	if err != nil || !known {
		return before, err
	}
	return before, json.Unmarshal([]byte(text), &before)
}

// Clean implements selftest.Machine. The record of what was before is removed last, and only if all else is done.
func (m Machine) Clean(ctx context.Context) (removed []string, err error) {
	before, err := recordedBefore()
	if err == nil {
		err = m.checkRoot(ctx)
	}
	if err != nil {
		return nil, err
	}
	ended, err := endPrograms()
	removed, failed := m.cleaner(before).Clean(ctx)
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
	if err != nil {
		return removed, err
	}
	return removed, hklm.IgnoreNotExist(registry.DeleteKey(registry.LOCAL_MACHINE, selftest.RegistryKey))
}

func (m Machine) cleaner(before selftest.Before) selftest.Cleaner {
	c := selftest.Cleaner{Host: m.host(), Folder: folderWork, Before: before}
	if m.Wine {
		// Its firewall and its routes cannot be asked (Skips).
		c.Without = []bundle.EntryKind{bundle.KindFirewall, bundle.KindRoute}
	}
	return c
}

// System implements selftest.Machine.
func (m Machine) System(ctx context.Context) (result.System, error) {
	var s result.System
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

// account returns as what kind of account this process runs.
func account() (string, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	if user.User.Sid.IsWellKnown(windows.WinLocalSystemSid) {
		return result.AccountSystem, nil
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
