package winhost

import (
	"slices"
	"testing"

	"golang.org/x/sys/windows/registry"

	"wmco/bundle"
)

// TestFactsSayWhyWindowsWaitsForABoot writes what Windows does. It does so under Wine alone: on Windows these places are its own.
func TestFactsSayWhyWindowsWaitsForABoot(t *testing.T) {
	if !isWine() {
		t.Skip("Windows alone writes these places of its registry")
	}
	reasons := func() []bundle.BootReason {
		t.Helper()
		facts, err := newHost().Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return facts.PendingBoots
	}
	if got := reasons(); len(got) != 0 {
		t.Fatalf("before: %q", got)
	}
	for _, path := range []string{`SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`, `SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired`} {
		k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, path, registry.ALL_ACCESS)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = registry.DeleteKey(registry.LOCAL_MACHINE, path) })
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := reasons(); !slices.Equal(got, []bundle.BootReason{bundle.BootForComponents, bundle.BootForUpdates}) {
		t.Errorf("of components and updates: %q", got)
	}
	session, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Control\Session Manager`, registry.ALL_ACCESS)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	const value = "PendingFileRenameOperations"
	for _, c := range []struct {
		list []string
		want bool
	}{{nil, false}, {[]string{`\??\C:\old.dll`, ""}, true}} {
		if err := session.SetStringsValue(value, c.list); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(reasons(), bundle.BootForFiles); got != c.want {
			t.Errorf("files %q: %t", c.list, got)
		}
	}
	if err := session.DeleteValue(value); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(reasons(), bundle.BootForFiles) {
		t.Error("the value was removed, and files are still reported as pending")
	}
}
