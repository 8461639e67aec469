package winhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/files"
	"wmco/bundle"
)

// folderLinks is made outside of Wine, which cannot create links: it has a folder with a file, a link to the folder, and a link
// to the file. folderModes has the files whose modes are checked outside afterwards.
const (
	folderLinks = `C:\wmco-links`
	folderModes = `C:\wmco-modes`
)

func TestLinks(t *testing.T) {
	h := quick()
	self, err := h.Stat(t.Context(), []string{folderLinks})
	if err != nil || self[0].Kind == plan.FileAbsent {
		t.Skip("there is no "+folderLinks, err)
	}
	link, inside, file := folderLinks+`\link`, folderLinks+`\link\file`, folderLinks+`\to-file`
	infos, err := h.Stat(t.Context(), []string{link, inside, file, folderLinks + `\link\none`})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []plan.FileKind
	for _, i := range infos {
		kinds = append(kinds, i.Kind)
	}
	if diff := cmp.Diff([]plan.FileKind{plan.FileOther, plan.FileOther, plan.FileOther, plan.FileAbsent}, kinds); diff != "" {
		t.Errorf("kinds of links and of files behind them (-want +got):\n%s", diff)
	}
	tries := map[string]func() error{
		"read a file through a link to it": func() error { _, err := h.Open(t.Context(), file); return err },
		"read a file behind a link":        func() error { _, err := h.Open(t.Context(), inside); return err },
		"write a file behind a link": func() error {
			return h.Write(t.Context(), inside, bundle.AccessUsers, strings.NewReader("x"))
		},
		"write a new file behind a link": func() error {
			return h.Write(t.Context(), folderLinks+`\link\new`, bundle.AccessUsers, strings.NewReader("x"))
		},
		"remove a file behind a link": func() error { return h.Remove(t.Context(), inside) },
		"make a folder behind a link": func() error { return h.MakeDirectory(t.Context(), folderLinks+`\link\new`, bundle.AccessUsers) },
		"give a link an access":       func() error { return h.MakeDirectory(t.Context(), link, bundle.AccessAdmins) },
		"link a file behind a link":   func() error { return h.Link(t.Context(), inside, folderLinks+`\second`) },
		"link to behind a link":       func() error { return h.Link(t.Context(), folderLinks+`\folder\file`, folderLinks+`\link\second`) },
		"empty a log behind a link":   func() error { return h.CopyTruncate(t.Context(), inside, folderLinks+`\copy`) },
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			if err := try(); !errors.Is(err, files.ErrLink) && !errors.Is(err, files.ErrNotFile) && !errors.Is(err, files.ErrNotDirectory) {
				t.Errorf("got %v", err)
			}
		})
	}
	data, err := os.ReadFile(folderLinks + `\folder\file`)
	if err != nil || string(data) != "text" {
		t.Errorf("the file behind the links: %q, %v", data, err)
	}
	if list, err := h.List(t.Context(), folderLinks+`\folder`); err != nil || len(list) != 1 {
		t.Errorf("%v in the folder behind the links, %v", list, err)
	}
	// A write replaces a link instead of following it.
	if err := h.Write(t.Context(), file, bundle.AccessUsers, strings.NewReader("new")); err != nil {
		t.Error(err)
	}
}

// TestModes creates a file and a folder for administrators and a file without an access, whose modes internal/test/winetest checks.
func TestModes(t *testing.T) {
	h := quick()
	if err := h.MakeDirectory(t.Context(), folderModes, bundle.AccessUsers); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(t.Context(), folderModes+`\file-admins`, bundle.AccessAdmins, strings.NewReader("x")); err != nil {
		t.Error(err)
	}
	if err := h.MakeDirectory(t.Context(), folderModes+`\folder-admins`, bundle.AccessAdmins); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(folderModes+`\file-plain`, nil, 0o644); err != nil {
		t.Error(err)
	}
}

func TestCopyTruncateWhileAProgramAppends(t *testing.T) {
	m := newMachine(t)
	path := m.Folder() + `\program.log`
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, text := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(log, text); err != nil {
			t.Fatal(err)
		}
		if err := quick().CopyTruncate(t.Context(), path, path+".1"); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path + ".1"); err != nil || string(data) != text {
			t.Errorf("the copy holds %q, %v, want %q", data, err, text)
		}
	}
	if _, err := io.WriteString(log, "three\n"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "three\n" {
		t.Errorf("the log holds %q, %v", data, err)
	}
}

// endless is content without an end. It prints a line after the first megabyte.
type endless struct{ yielded int }

func (e *endless) Read(b []byte) (int, error) {
	if e.yielded += len(b); e.yielded > 1<<20 && e.yielded <= 1<<20+len(b) {
		fmt.Println("writes")
	}
	return len(b), nil
}

func writeForEver(path string) {
	if err := newHost().Write(context.Background(), path, bundle.AccessUsers, &endless{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestAKilledWriterLeavesTheOldFile(t *testing.T) {
	m := newMachine(t)
	path := m.Folder() + `\file`
	h := quick()
	if err := h.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(own)
	writer.Env = append(os.Environ(), asWriter+"="+path)
	stdout, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = bufio.NewReader(stdout).ReadString('\n')
	_ = writer.Process.Kill()
	_ = writer.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("the file holds %d bytes, %v", len(data), err)
	}
	names := func() []string {
		infos, err := h.List(t.Context(), m.Folder())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, i := range infos {
			all = append(all, i.Path)
		}
		return all
	}
	if diff := cmp.Diff([]string{path, plan.NewName(path)}, names()); diff != "" {
		t.Errorf("after the writer was killed (-want +got):\n%s", diff)
	}
	if err := h.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path}, names()); diff != "" {
		t.Errorf("after the next write (-want +got):\n%s", diff)
	}
}

func TestAFileThatIsLockedForAShortTimeIsWaitedFor(t *testing.T) {
	m := newMachine(t)
	path := m.Folder() + `\file`
	h := quick()
	if err := h.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func() error{
		"write":  func() error { return h.Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("new")) },
		"remove": func() error { return h.Remove(t.Context(), path) },
	}
	for _, name := range []string{"write", "remove"} {
		time.AfterFunc(time.Second/4, machine{}.HoldOpen(t, path))
		if err := changes[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSettingsThatWineDoesNotHave makes the calls that Wine does not implement.
func TestSettingsThatWineDoesNotHave(t *testing.T) {
	if !isWine() {
		t.Skip("Windows has them")
	}
	for _, s := range []plan.Setting{
		{Kind: bundle.KindFirewall, Name: "x", Value: "TCP/10250", Present: true},
		{Kind: bundle.KindExclusion, Name: `C:\k\x.exe`, Present: true},
		{Kind: bundle.KindFeature, Name: "Containers", Present: true},
		{Kind: bundle.KindEndpoint, Name: "VIPEndpoint", Value: "overlay/1", Present: true},
		{Kind: bundle.KindRoute, Name: "198.51.100.0/24", Value: bundle.ViaDefault, Present: true},
	} {
		t.Run(string(s.Kind), func(t *testing.T) {
			absent := plan.Setting{Kind: s.Kind, Name: s.Name}
			want := absent
			want.Unavailable = s.Kind != bundle.KindRoute // Wine has routes and no function that changes them
			if got := setting(t, quick(), absent); got != want {
				t.Errorf("got %+v", got)
			}
			if err := quick().Set(t.Context(), s); !errors.Is(err, applier.ErrNoSetting) {
				t.Errorf("setting it: %v", err)
			}
			if err := quick().Set(t.Context(), absent); err != nil {
				t.Errorf("removing it: %v", err)
			}
		})
	}
}

// TestTheLockHoldsWhileItsFileIsRemovedAndCreated locks and unlocks in parallel. Who unlocks removes the file and its folder.
func TestTheLockHoldsWhileItsFileIsRemovedAndCreated(t *testing.T) {
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for locked := 0; locked < 25; {
				release, err := newHost().Lock(t.Context(), "one of many")
				var other *applier.LockedError
				if errors.As(err, &other) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				inside.Add(-1)
				locked++
				if err := release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// The last of many may leave the folder: the file of the one before may not be removed yet (Wine, on a busy computer).
	release, err := newHost().Lock(t.Context(), "the last one")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(plan.StateFolder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
