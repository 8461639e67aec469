package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestCheckRoots: no part of a bundle names a path outside of the roots, whatever it is for.
func TestCheckRoots(t *testing.T) {
	const inside, outside = `C:\k\a`, `C:\Windows\System32\a.exe`
	layers := map[string]func(path string) bundle.Layer{
		"a folder":      func(path string) bundle.Layer { return bundle.Layer{Directories: []bundle.Directory{{Path: path}}} },
		"a file":        func(path string) bundle.Layer { return bundle.Layer{Files: []bundle.File{{Path: path}}} },
		"an executable": func(path string) bundle.Layer { return bundle.Layer{Payload: []bundle.Payload{{Path: path}}} },
		"state":         func(path string) bundle.Layer { return bundle.Layer{State: []bundle.State{{Path: path}}} },
		"the program of a service": func(path string) bundle.Layer {
			return bundle.Layer{Services: []bundle.Service{{Argv: []string{path}}}}
		},
		"a log": func(path string) bundle.Layer {
			return bundle.Layer{Services: []bundle.Service{{Argv: []string{inside}, Logs: []bundle.Log{{Path: path}}}}}
		},
	}
	for name, layer := range layers {
		for _, b := range []bundle.Bundle{{Cluster: layer(inside)}, {Node: layer(inside)}} {
			if err := CheckRoots(b); err != nil {
				t.Errorf("%s inside: %v", name, err)
			}
		}
		for _, b := range []bundle.Bundle{{Cluster: layer(outside)}, {Node: layer(outside)}} {
			if err := CheckRoots(b); !errors.Is(err, bundle.ErrPath) {
				t.Errorf("%s outside: %v", name, err)
			}
		}
	}
	for _, path := range []string{`C:\k`, `c:\K\a`, `C:\var\log\a`, `C:\VAR\lib`} {
		if err := CheckRoots(bundle.Bundle{Cluster: bundle.Layer{Files: []bundle.File{{Path: path}}}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{`C:\kk`, `C:\`, `C:\var`, `C:\var\logs\a`, `D:\k\a`, ""} {
		if err := CheckRoots(bundle.Bundle{Cluster: bundle.Layer{Files: []bundle.File{{Path: path}}}}); !errors.Is(err, bundle.ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestCheckKept: a journal may name paths in the roots, and the folders around them, which a run may have made.
func TestCheckKept(t *testing.T) {
	for _, path := range []string{`C:\k`, `C:\k\a`, `C:\var`, `C:\VAR\log`, `C:\var\lib\kubelet`, `C:\programdata\containerd`} {
		if err := CheckKept(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{`C:\Windows`, `C:\ProgramData`, `C:\ProgramData\containerd\root`, `C:\va`, `C:\var\elsewhere`, `C:\k\..\Windows`, `C:\k\a:stream`, `k\a`, ""} {
		if err := CheckKept(path); !errors.Is(err, bundle.ErrPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestGuardedFolders(t *testing.T) {
	if diff := cmp.Diff([]string{`C:\k`, `C:\var`, `C:\var\log`, `C:\var\lib`}, GuardedFolders()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWhoIsTrusted: what others can have written is not trusted.
func TestWhoIsTrusted(t *testing.T) {
	for _, tt := range []struct {
		name string
		info FileInfo
		want bool
	}{
		{"nothing", FileInfo{Owner: OwnerOther, Access: AccessOther}, true},
		{"a file of administrators alone", FileInfo{Kind: FileRegular, Owner: OwnerAdmins, Access: bundle.AccessAdmins}, true},
		{"a folder of which the host knows neither owner nor access", FileInfo{Kind: FileDirectory}, true},
		{"a file of somebody else", FileInfo{Kind: FileRegular, Owner: OwnerOther, Access: bundle.AccessAdmins}, false},
		{"a file that users may read", FileInfo{Kind: FileRegular, Owner: OwnerAdmins, Access: bundle.AccessUsers}, false},
		{"a folder with another access", FileInfo{Kind: FileDirectory, Owner: OwnerAdmins, Access: AccessOther}, false},
		{"a link", FileInfo{Kind: FileOther, Owner: OwnerAdmins, Access: bundle.AccessAdmins}, false},
	} {
		if got := tt.info.IsTrusted(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestNamesOfLeftovers: what a host writes beside a file is known to be its own by its name.
func TestNamesOfLeftovers(t *testing.T) {
	for path, want := range map[string]bool{NewName(confFile): true, AsideName(program, "7"): true, confFile: false} {
		if got := IsLeftover(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{{"*.LOG", `C:\var\log\kubelet\Kubelet.log`, true}, {"kubelet-*", `C:\var\log\kubelet-1\a`, false}, {"[", `C:\k\[`, false}} {
		if got := MatchesPattern(tt.pattern, tt.path); got != tt.want {
			t.Errorf("%s and %s: %t", tt.pattern, tt.path, got)
		}
	}
}
