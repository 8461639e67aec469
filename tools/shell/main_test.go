package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the program itself where a test starts it by one of its names.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "shell.test" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command returns a command that finds no other programs than this one.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"bash", "sh", "sleep", "sync", "tar"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
	cmd.Env = []string{"PATH=" + bin}
	return cmd
}

// TestTheGatherContainer has a check of the volume in the background, which asks programs that are not there, as the script of oc does.
func TestTheGatherContainer(t *testing.T) {
	const script = `
echo "checking"
while true; do
used=$(df -P "/must-gather" | awk 'NR==2 {print $5}' | sed 's/%//')
if [ "$used" -gt "70" ]; then
	kill 0
	exit 1
fi
sleep 5
done & COMMAND; sync`
	for gather, want := range map[string]string{"echo gathered": "gathered", "cd / && echo \"$PWD\"": "/"} {
		cmd := command(t, "bash", "-c", strings.Replace(script, "COMMAND", gather, 1))
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), want+"\n") {
			t.Errorf("%s: %v: %q", gather, err, out)
		}
	}
}

func TestTheStatusOfAScript(t *testing.T) {
	err := command(t, "bash", "-c", "false; exit 7").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Error(err)
	}
	if err := command(t, "bash", "script").Run(); !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		t.Error(err)
	}
}

// TestTheCopyContainer waits until it is told to end. As the first process of a container it gets no signal that it does not handle.
func TestTheCopyContainer(t *testing.T) {
	cmd := command(t, "bash", "-c", "trap : TERM INT; echo waiting; sleep infinity & wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("waiting\n"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "waiting\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitTerminated {
		t.Error(err)
	}
}

func TestTar(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"version": "one\ntwo\n", "nodes/win-1/agent.log": "log\n"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	written := time.Unix(1_700_000_000, 900_000_000)
	if err := os.Chtimes(filepath.Join(dir, "version"), written, written); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "tar", "-C", dir+"/", "-c", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for in := tar.NewReader(bytes.NewReader(out)); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		have[header.Name] = string(text)
		if header.Name == "version" && header.ModTime.After(written) {
			t.Errorf("a file that was written at %s is of %s", written, header.ModTime)
		}
	}
	want := map[string]string{"./": "", "nodes/": "", "nodes/win-1/": "", "nodes/win-1/agent.log": "log\n", "version": "one\ntwo\n"}
	if !maps.Equal(have, want) {
		t.Errorf("%q", have)
	}
	if out, err := command(t, "tar", "--version").Output(); err != nil || len(out) == 0 {
		t.Error(err)
	}
	if err := command(t, "tar", "-C", dir, "-ox").Run(); err == nil {
		t.Error("it extracts")
	}
}

func TestSleep(t *testing.T) {
	if err := command(t, "sleep", "0.01").Run(); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{}, {"long"}, {"1", "2"}} {
		if err := command(t, "sleep", args...).Run(); err == nil {
			t.Errorf("sleep %q", args)
		}
	}
}
