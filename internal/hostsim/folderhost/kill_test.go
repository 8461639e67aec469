//go:build unix

package folderhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
)

// The environment variables of a second process of this test: childRoot is the root of the host on which it works, and childKill the change of the
// host before which it kills itself, from 0. Without childKill it holds the lock until it is killed.
const (
	childRoot = "WMCO_FOLDERHOST_ROOT"
	childKill = "WMCO_FOLDERHOST_KILL"
)

func TestMain(m *testing.M) {
	root, kill := os.Getenv(childRoot), os.Getenv(childKill)
	switch {
	case kill != "":
		if err := workUntil(root, kill); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case root != "":
		fmt.Println(work(root, os.Args[len(os.Args)-1]))
	default:
		os.Exit(m.Run())
	}
}

// workUntil takes the lock, and changes the host to the other state and back. The process kills itself before a change.
func workUntil(root, kill string) error {
	left, err := strconv.Atoi(kill)
	if err != nil {
		return err
	}
	h, err := New(root, Options{OnChange: func() {
		if left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it is about to end
		}
		left--
	}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := h.Lock(ctx, "killed process"); err != nil {
		return err
	}
	return errors.Join(change(ctx, h, "new"), change(ctx, h, "old"))
}

// work takes the lock, prints that it did, and keeps it until the process is killed, or its standard input ends with the process that started it.
func work(root, owner string) error {
	h, err := New(root, Options{})
	if err != nil {
		return err
	}
	if _, err := h.Lock(context.Background(), owner); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// change writes a word everywhere.
func change(ctx context.Context, h *Host, word string) error {
	return errors.Join(
		h.Write(ctx, `C:\k\service.exe`, bundle.AccessUsers, strings.NewReader(strings.Repeat(word, 10000))),
		h.Link(ctx, `C:\k\service.exe`, `C:\k\second`),
		h.PutService(ctx, plan.ServiceConfig{Name: "service", Description: word, Start: bundle.StartAuto, CommandLine: `C:\k\service.exe`}),
		h.StartService(ctx, "service"),
		h.Set(ctx, plan.Setting{Kind: bundle.KindVariable, Name: "WORD", Value: strings.Repeat(word, 1000), Present: true}),
		h.StopService(ctx, "service"),
		h.DeleteService(ctx, "service"),
		h.Remove(ctx, `C:\k\folder`),
		h.MakeDirectory(ctx, `C:\k\folder`, bundle.AccessUsers),
		h.Restart(ctx),
	)
}

// other runs a second process of this test on the host until kill.
func other(t testing.TB, root, owner string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], owner)
	cmd.Env = append(os.Environ(), childRoot+"="+root)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	_, err = cmd.StdinPipe() // nothing is written to it
	ok(t, err)
	ok(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the other process printed %q: %v", line, err)
	}
	return func() {
		ok(t, cmd.Process.Kill())
		if cmd.Wait() == nil {
			t.Error("the other process ended by itself")
		}
	}
}

func TestKilledProcessLeavesOldOrNewState(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	h := create(t, root)
	ok(t, h.MakeDirectory(t.Context(), `C:\k`, bundle.AccessUsers))
	ok(t, change(t.Context(), h, "old"))
	kills := 0
	for n := 0; killedAt(t, root, n); n++ {
		kills++
		whole(t, reopen(t, root))
		if t.Failed() {
			t.Fatalf("killed before change %d", n)
		}
	}
	t.Logf("%d kills", kills)
	if kills < 20 {
		t.Errorf("only %d kills", kills)
	}
}

// killedAt lets a second process of this test change the host and kill itself before the n-th change. It reports whether there were so many.
func killedAt(t *testing.T, root string, n int) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root, childKill+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the process that was to be killed before change %d: %v\n%s", n, err, out)
	}
	return true
}

// whole checks that everything holds one of the two words completely.
func whole(t *testing.T, h *Host) {
	t.Helper()
	release, err := h.Lock(t.Context(), "next process")
	ok(t, err)
	snap := snapshot(t, h)
	for path, f := range snap.Files {
		old, latest := bundle.Of([]byte(strings.Repeat("old", 10000))), bundle.Of([]byte(strings.Repeat("new", 10000)))
		switch {
		case path == `C:\k\folder` && f.Access != bundle.AccessUsers:
			t.Errorf("%s has access %q, which nobody gave it", path, f.Access)
		case f.Kind == plan.FileDirectory || plan.IsLeftover(path):
		case f.Digest != old && f.Digest != latest:
			t.Errorf("%s holds neither the old nor the new contents", path)
		}
	}
	for _, path := range []string{`C:\k\service.exe`, `C:\k\second`} {
		if snap.Files[path].Kind != plan.FileRegular {
			t.Errorf("%s is missing", path)
		}
	}
	word := snap.Settings["variable word"].Value
	if word != strings.Repeat("old", 1000) && word != strings.Repeat("new", 1000) {
		t.Errorf("the variable is %q", word)
	}
	ok(t, change(t.Context(), h, "old"))
	ok(t, release())
}
