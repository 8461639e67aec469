package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWindowsFlags(t *testing.T) {
	flags, err := windowsFlags(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]bool{
		"config":                true,
		"help":                  true,
		"node-ip":               true,
		"v":                     true,
		"version":               true,
		"windows-service":       true,
		"windows-priorityclass": true,
		"cloud-config":          false, // removed from Kubernetes
		"housekeeping-interval": false, // registered on Linux only
		"machine-id-file":       false,
	} {
		if got := slices.Contains(flags, flag); got != want {
			t.Errorf("flag --%s known: %t, want %t", flag, got, want)
		}
	}
}

func TestRegisteredInErrors(t *testing.T) {
	r := registration{calls: []string{"StringVar"}, position: 1}
	for name, source := range map[string]string{
		"no flag at all":          "package p\n",
		"a name that is computed": "package p\n\nfunc f() { fs.StringVar(&x, prefix+\"name\", \"\", \"\") }\n",
		"too few arguments":       "package p\n\nfunc f() { fs.StringVar(&x) }\n",
		"not Go":                  "nothing",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "flags.go")
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			if names, err := registeredIn(file, r); err == nil {
				t.Errorf("registeredIn = %q, want an error", names)
			}
		})
	}
}
