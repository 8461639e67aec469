package sshd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgramsOfAHostEnd shows that a program of the host which no session has any longer is killed, and no other.
func TestProgramsOfAHostEnd(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	host, other := t.TempDir(), t.TempDir()
	var started [2]*exec.Cmd
	for i, folder := range []string{host, other} {
		program := filepath.Join(folder, "wmco-node.exe")
		if err := os.WriteFile(program, data, 0o700); err != nil {
			t.Fatal(err)
		}
		started[i] = exec.CommandContext(t.Context(), program, "3600")
		if err := started[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { // the end of the context kills it later, when this process may have ended
		_ = started[1].Process.Kill()
		_ = started[1].Wait()
	}()
	(&Server{Root: host}).EndPrograms()
	if err := started[0].Wait(); err == nil || programsBelow(host) != nil {
		t.Errorf("it ended with %v; of the host there run %v", err, programsBelow(host))
	}
	if len(programsBelow(other)) != 1 {
		t.Error("a program of another host was ended")
	}
}
