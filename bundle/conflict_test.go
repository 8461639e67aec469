package bundle

import (
	"errors"
	"strings"
	"testing"
)

func TestInvalidBundlesAreRefused(t *testing.T) {
	tests := map[string]func(*Bundle){
		"a secret in the node layer": func(b *Bundle) {
			b.Node.Files = []File{{Path: `C:\k\s`, Digest: Masked, Secret: true, Access: AccessAdmins, Impact: ImpactNone}}
		},
		"a secret that users may read":          func(b *Bundle) { b.Cluster.Files[1].Access = AccessUsers },
		"environment in the node layer":         func(b *Bundle) { b.Node.Environments = []Environment{{Name: "x"}} },
		"one file twice, by case":               func(b *Bundle) { b.Cluster.Files[0].Path = `C:\K\a.TXT` },
		"one service in both layers":            func(b *Bundle) { b.Node.Services[0].Name = "containerd"; b.Node.Services[0].Dependencies = nil },
		"a dependency that is not there":        func(b *Bundle) { b.Node.Services[0].Dependencies = []string{"gone"} },
		"an environment that is not there":      func(b *Bundle) { b.Cluster.Environments = nil },
		"a service without a command":           func(b *Bundle) { b.Node.Services[0].Argv = nil },
		"a command that Windows would expand":   func(b *Bundle) { b.Node.Services[0].Argv = append(b.Node.Services[0].Argv, "--x=%PATH%") },
		"a path that leaves its folder":         func(b *Bundle) { b.Cluster.Files[0].Path = `C:\k\..\Windows\x` },
		"an unknown impact":                     func(b *Bundle) { b.Cluster.Files[0].Impact = "some" },
		"a digest that is none":                 func(b *Bundle) { b.Cluster.Files[0].Digest = "sha256:12" },
		"a secret variable that shows itself":   func(b *Bundle) { b.Cluster.Environments[0].Variables[0].Digest = Masked },
		"a variable with = in its name":         func(b *Bundle) { b.Cluster.Environments[0].Variables[0].Name = "A=B" },
		"a file that is an executable, by case": func(b *Bundle) { b.Cluster.Payload = []Payload{{Path: `C:\k\A.TXT`}} },
		"a file in both layers, by case": func(b *Bundle) {
			b.Node.Files = []File{{Path: `C:\K\a.txt`, Digest: Masked, Access: AccessUsers, Impact: ImpactNone}}
		},
		"an executable in both layers": func(b *Bundle) {
			b.Cluster.Payload, b.Node.Payload = []Payload{{Path: `C:\k\x.exe`}}, []Payload{{Path: `C:\K\X.exe`}}
		},
		"one service in both layers, by case": func(b *Bundle) { b.Node.Services[0].Name = "CONTAINERD"; b.Node.Services[0].Dependencies = nil },
		"a file that is a folder": func(b *Bundle) {
			b.Cluster.Directories = []Directory{{Path: b.Cluster.Files[0].Path, Access: AccessUsers}}
		},
		"a file below a file": func(b *Bundle) {
			b.Cluster.Payload = []Payload{{Path: b.Cluster.Files[0].Path + `\folder\x.exe`}}
		},
		"a folder below an executable": func(b *Bundle) {
			b.Cluster.Payload = []Payload{{Path: `C:\k\x.exe`}}
			b.Cluster.Directories = []Directory{{Path: `C:\K\X.EXE\folder`, Access: AccessUsers}}
		},
		"services that depend on each other": func(b *Bundle) {
			b.Cluster.Services[0].Dependencies = []string{strings.ToUpper(b.Node.Services[0].Name)}
		},
		"a service that depends on itself":                    func(b *Bundle) { b.Node.Services[0].Dependencies = []string{b.Node.Services[0].Name} },
		"a file with an unknown access":                       func(b *Bundle) { b.Cluster.Files[0].Access = "everybody" },
		"a folder with an unknown access":                     func(b *Bundle) { b.Cluster.Directories = []Directory{{Path: `C:\k\folder`}} },
		"a file that is named like one that is being written": func(b *Bundle) { b.Cluster.Files[0].Path += ".WMCO-new" },
		"a file that is named like a program moved aside":     func(b *Bundle) { b.Cluster.Payload = []Payload{{Path: `C:\k\x.exe.wmco-old-1`}} },
		"a path without room for the name of a temporary file": func(b *Bundle) {
			b.Cluster.Files[0].Path = `C:\k\` + strings.Repeat("a", MaxFile-len(`C:\k\`)+1)
		},
		"a service with a slash in its name": func(b *Bundle) { b.Node.Services[0].Name = "a/b" },
		"a variable that belongs to Windows": func(b *Bundle) { b.Cluster.Variables = []Variable{{Name: "PATH", Value: "x"}} },
		"a variable of a service, twice": func(b *Bundle) {
			env := &b.Cluster.Environments[0]
			env.Variables = append(env.Variables, env.Variables[0])
		},
		"a Kelvin sign in the name of a root":  func(b *Bundle) { b.Cluster.Files[0].Path = "C:\\\u212a\\x" },
		"an executable outside the namespaces": func(b *Bundle) { b.Cluster.Payload = []Payload{{Path: `\\server\share\x.exe`}} },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			b := example()
			spoil(&b)
			b.Cluster.Normalize()
			b.Node.Normalize()
			if _, err := b.Manifest(); !errors.Is(err, ErrInconsistent) {
				t.Errorf("error %v, want ErrInconsistent", err)
			}
		})
	}
}

func TestAnInvalidBundleIsRefusedByTheNamesOfItsEntries(t *testing.T) {
	b := example()
	b.Cluster.Payload = []Payload{{Path: `C:\K\B.txt`}}
	b.Cluster.Normalize()
	err := b.Check()
	for _, id := range []EntryID{KindFile.ID(`C:\k\b.txt`), KindPayload.ID(`C:\K\B.txt`)} {
		if err == nil || !strings.Contains(err.Error(), string(id)) {
			t.Errorf("error %v does not name %s", err, id)
		}
	}
}
