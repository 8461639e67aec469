//go:build windows

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"
)

// fileBefore is what the machine had before the first bundle.
const fileBefore = root + `\before.json`

// settings are what a bundle changes outside of its folders.
type settings struct {
	Services  []string          `json:"services"`
	Variables map[string]string `json:"variables"`
	Roots     []string          `json:"roots"`
	Firewall  []string          `json:"firewall"`
}

// Keys of the registry: variables of the machine, its trusted roots, and the rules of Windows Firewall
// (learn.microsoft.com/windows/win32/procthread/environment-variables, .../seccrypto/system-store-locations).
const (
	keyVariables = `SYSTEM\CurrentControlSet\Control\Session Manager\Environment`
	keyRoots     = `SOFTWARE\Microsoft\SystemCertificates\Root\Certificates`
	keyFirewall  = `SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules`
)

func readSettings() (settings, error) {
	manager, err := mgr.Connect()
	if err != nil {
		return settings{}, err
	}
	defer manager.Disconnect() //nolint:errcheck // nothing is lost
	s := settings{Variables: map[string]string{}}
	s.Services, err = manager.ListServices()
	if err != nil {
		return s, err
	}
	// A service of a user has a suffix for each login.
	s.Services = slices.DeleteFunc(s.Services, func(name string) bool { return strings.Contains(name, "_") && !slices.Contains(services(), name) })
	slices.Sort(s.Services)
	err = errors.Join(
		withKey(keyVariables, func(k registry.Key) error {
			names, err := k.ReadValueNames(-1)
			for _, name := range names {
				text, _, err2 := k.GetStringValue(name)
				s.Variables[name] = text
				err = errors.Join(err, err2)
			}
			return err
		}),
		withKey(keyRoots, func(k registry.Key) (err error) {
			s.Roots, err = k.ReadSubKeyNames(-1)
			return err
		}),
		withKey(keyFirewall, func(k registry.Key) (err error) {
			s.Firewall, err = k.ReadValueNames(-1)
			return err
		}),
	)
	slices.Sort(s.Roots)
	slices.Sort(s.Firewall)
	return s, err
}

// withKey opens a key to read it. One that does not exist is empty.
func withKey(path string, use func(registry.Key) error) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.READ)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer k.Close() //nolint:errcheck // it was only read
	return use(k)
}

// keepBefore writes what the machine has, unless it had a bundle already.
func keepBefore() error {
	if _, err := os.Stat(fileBefore); err == nil {
		return nil
	}
	if _, err := os.Stat(own[0]); err == nil {
		return fmt.Errorf("%s is there: this machine is a node. Use a spare one", own[0])
	}
	s, err := readSettings()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(fileBefore, text, 0o600)
}

// own are the folders of bundles and of the node agent. Logs stay.
var own = []string{`C:\ProgramData\wmco`, `C:\k`, `C:\Windows\wmco`, `C:\var`}

// cleanUp removes the bundle, and compares the machine with what it had before.
func cleanUp(ctx context.Context, m machine) error {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	if _, err := m.runAgent(ctx, "cleanup", "", 0); err != nil {
		return err
	}
	text, err := os.ReadFile(fileBefore)
	if err != nil {
		return err
	}
	var before settings
	if err := json.Unmarshal(text, &before); err != nil {
		return err
	}
	now, err := readSettings()
	if err != nil {
		return err
	}
	left, err := leftFiles()
	left = append(left, before.differences(now)...)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d things are left or missing:\n%s", len(left), strings.Join(left, "\n"))
	}
	if err == nil {
		m.say(
			"nothing is left: files, %d services, %d variables, %d roots, %d firewall rules are as before",
			len(now.Services), len(now.Variables), len(now.Roots), len(now.Firewall),
		)
	}
	return err
}

func (s settings) differences(now settings) []string {
	var all []string
	for _, part := range []struct {
		what        string
		before, now []string
	}{
		{"service", s.Services, now.Services}, {"variable", lines(s.Variables), lines(now.Variables)},
		{"trusted root", s.Roots, now.Roots}, {"firewall rule", s.Firewall, now.Firewall},
	} {
		for _, x := range part.before {
			if !slices.Contains(part.now, x) {
				all = append(all, part.what+" is missing: "+x)
			}
		}
		for _, x := range part.now {
			if !slices.Contains(part.before, x) {
				all = append(all, part.what+" is left: "+x)
			}
		}
	}
	return all
}

func lines(variables map[string]string) []string {
	var all []string
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// leftFiles returns the files left in the folders of bundles, except logs and the kubelet's certificate, which these
// steps wrote.
func leftFiles() ([]string, error) {
	var left []string
	for _, folder := range own {
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil && !d.IsDir() && !strings.HasPrefix(path, `C:\var\log\`) {
				left = append(left, "file is left: "+path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}
