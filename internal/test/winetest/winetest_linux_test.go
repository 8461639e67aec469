package winetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const probe = `C:\k\probe.exe`

func TestRunsAWindowsProgram(t *testing.T) {
	t.Parallel()
	p := New(t)
	p.Build(t, probe, ".", "./testdata/probe")
	args := []string{"a b", "", `say "hi"`, `C:\dir\`, `C:\my dir\`, "ünïcode"}
	r := p.Run(t, Command{Path: probe, Args: args, Dir: `C:\k`, Env: []string{"WINETEST=a value"}, Stdin: "to stdin\r\n"})
	if r.ExitCode != 3 || r.Stderr != "to stderr\n" {
		t.Errorf("exit code %d, want 3; stderr %q", r.ExitCode, r.Stderr)
	}
	type output struct {
		Args                                []string
		Dir, File, Stdin, Variable, Version string
	}
	const written = "written by a Windows program\r\n"
	want := output{Args: args, Dir: `C:\k`, File: written, Stdin: "to stdin\r\n", Variable: "a value", Version: "10.0.20348 type 3"}
	var got output
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, r.Stdout)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := string(p.ReadFile(t, `C:\k\probe.txt`)); got != written {
		t.Errorf("on the disk: %q", got)
	}
}

func TestAProgramChangesNoOtherPrefix(t *testing.T) {
	t.Parallel()
	const key, added = `HKLM\Software\wmco`, `C:\windows\system32\drivers\etc\added`
	one, two := New(t), New(t)
	if r := one.Run(t, Command{Path: "reg", Args: []string{"add", key, "/v", "name", "/d", "value"}}); r.ExitCode != 0 {
		t.Fatalf("writing the registry: %+v", r)
	}
	one.WriteFile(t, added, []byte("x"))
	one.Reboot(t)
	if r := one.Run(t, Command{Path: "reg", Args: []string{"query", key}}); r.ExitCode != 0 {
		t.Errorf("the registry is lost after a reboot: %+v", r)
	}
	if r := two.Run(t, Command{Path: "reg", Args: []string{"query", key}}); r.ExitCode == 0 {
		t.Errorf("another prefix has the key: %s", r.Stdout)
	}
	if _, err := os.Stat(two.Path(added)); err == nil {
		t.Error("another prefix has the file")
	}
	// All prefixes share large files: no program can write to them, and each can replace them.
	const large = `C:\windows\system32\kernel32.dll`
	before := two.ReadFile(t, large)
	one.Run(t, Command{Path: "cmd", Args: []string{"/c", `echo changed>` + large}})
	one.WriteFile(t, large, []byte("replaced"))
	if !bytes.Equal(before, two.ReadFile(t, large)) {
		t.Error("a program changed a file of another prefix")
	}
}

func TestAMachineEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var folder string
	t.Run("inside", func(t *testing.T) {
		p := New(t)
		folder = p.folder
		if r := p.Run(t, Command{Path: "cmd", Args: []string{"/c", "start", "/b", "ping", "-n", "600", "127.0.0.1"}}); r.ExitCode != 0 {
			t.Fatalf("%+v", r)
		}
		if len(processes(t, folder)) == 0 {
			t.Fatal("no process sees the prefix")
		}
	})
	if folder == "" {
		t.SkipNow() // like the test inside
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is still there")
	}
	for deadline := time.Now().Add(10 * time.Second); len(processes(t, folder)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", processes(t, folder))
		}
	}
}

// processes returns the processes that have the folder mounted.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		mounts, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(mounts), filepath.Base(folder)) {
			found = append(found, file)
		}
	}
	return found
}

func TestSkipsWithoutWine(t *testing.T) {
	t.Setenv(Variable, "")
	reached := false
	t.Run("no Wine", func(t *testing.T) {
		New(t)
		reached = true
	})
	if reached {
		t.Error("not skipped")
	}
}
