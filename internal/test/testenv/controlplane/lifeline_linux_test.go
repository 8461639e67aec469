package controlplane

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestAKilledProgramLeavesNothing(t *testing.T) {
	start(t, Options{}) // or skips
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	left := strings.Fields(lines.Text())
	pids, err := childProcesses(program.Process.Pid, names)
	if err != nil || len(pids) != 2 || len(left) != 1 {
		t.Fatalf("%q started %q: %v", left, pids, err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	for _, pid := range pids {
		left = append(left, filepath.Join("/proc", pid))
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(left, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		}), nil
	})
	if err != nil {
		t.Errorf("waiting for the end of %q: %v", left, err)
	}
}

func TestTheServerListensOnLoopbackOnly(t *testing.T) {
	start(t, Options{Controllers: true})
	pids, err := childProcesses(os.Getpid(), names)
	if err != nil || len(pids) != len(names) {
		t.Fatalf("%q, %v", pids, err)
	}
	count := 0
	for _, pid := range pids {
		for _, address := range listening(t, pid) {
			count++
			// 127.0.0.1 in the byte order of the kernel.
			if !strings.HasPrefix(address, "0100007F:") {
				t.Errorf("process %s listens on %s", pid, address)
			}
		}
	}
	if count != 3 {
		t.Errorf("%d sockets listen, want one of kube-apiserver and two of etcd", count)
	}
}

var socket = regexp.MustCompile(`^socket:\[(\d+)\]$`)

// listening returns the addresses that a process listens on, in the format of the kernel.
func listening(t *testing.T, pid string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, link := range links {
		target, _ := os.Readlink(link)
		if m := socket.FindStringSubmatch(target); m != nil {
			open[m[1]] = true
		}
	}
	var addresses []string
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile("/proc/" + pid + "/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			// sl local remote state(0A listens) queues timer retransmits uid timeout inode
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && open[f[9]] {
				addresses = append(addresses, f[1])
			}
		}
	}
	return addresses
}
