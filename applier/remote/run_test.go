package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

const programPath = `C:\k\agent\wmco-node-0123456789ab.exe`

// fakeHost is a Transport to one host. Its agent answers with its facts.
type fakeHost struct {
	// status is what its shell exits with if there is no agent; text is set if it damages other input than text.
	status  int
	text    bool
	noFiles bool
	digest  bundle.Digest
	// asked are the commands, without the path of the program.
	asked    []string
	uploaded bool
}

func (h *fakeHost) Connect(context.Context, Target) error { return nil }

func (h *fakeHost) Close() error { return nil }

func (h *fakeHost) Run(ctx context.Context, t Target, c Command) error {
	_, words, _ := strings.Cut(c.Line, " ")
	h.asked = append(h.asked, words)
	failed := &CommandError{Target: t, Command: c.Name, Status: h.status}
	if !h.uploaded {
		return errors.Join(failed, c.Stdout(strings.NewReader("Welcome!\r\n")))
	}
	if c.Stdin != nil {
		if err := c.Stdin(ctx, io.Discard); err != nil {
			return err
		}
		if h.text && !strings.HasSuffix(words, textFlag) {
			return errors.Join(failed, c.Stdout(strings.NewReader("")))
		}
	}
	if words == wordVersion {
		return c.Stdout(strings.NewReader(`{"digest":"` + string(h.digest) + `"}`))
	}
	return c.Stdout(strings.NewReader(`{"schema":1,"hostName":"h","addresses":[],"osBuild":"10.0.20348"}`))
}

func (h *fakeHost) Transfer(_ context.Context, _ Target, do func(Files) error) error {
	if h.noFiles {
		return ErrNoSFTP
	}
	h.asked = append(h.asked, "sftp")
	files := fakeFiles{}
	err := do(files)
	h.uploaded = files[strings.TrimPrefix(sftpPath(programPath), "/")] != nil
	return err
}

// fakeFiles are the files of a fakeHost.
type fakeFiles map[string]*fstest.MapFile

func (f fakeFiles) ReadDir(path string) ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(fstest.MapFS(f), strings.TrimPrefix(path, "/"))
	var all []fs.FileInfo
	for _, e := range entries {
		info, _ := e.Info()
		all = append(all, info)
	}
	return all, err
}

func (f fakeFiles) MkdirAll(string) error { return nil }

func (f fakeFiles) Write(path string, from io.Reader, _ int64) error {
	data, err := io.ReadAll(from)
	f[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: data}
	return err
}

func (f fakeFiles) Replace(from, to string) error {
	f[strings.TrimPrefix(to, "/")] = f[strings.TrimPrefix(from, "/")]
	return f.Remove(from)
}

func (f fakeFiles) Remove(path string) error {
	delete(f, strings.TrimPrefix(path, "/"))
	return nil
}

func TestAgentIsUploadedWhereItIsMissingAndGetsTextWhereItMust(t *testing.T) {
	program := Program{Path: programPath, Digest: bundle.Of([]byte("agent")), Size: 5, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("agent")), nil
	}}
	for _, tt := range []struct {
		what string
		host fakeHost
		want []string
		err  string
	}{
		{"the agent is there", fakeHost{uploaded: true}, []string{"facts", "facts"}, ""},
		{"cmd does not find it", fakeHost{status: 1, digest: program.Digest}, []string{"facts", "sftp", "version", "facts", "facts"}, ""},
		{"sh does not find it", fakeHost{status: 127, digest: program.Digest}, []string{"facts", "sftp", "version", "facts", "facts"}, ""},
		{"the agent's own status", fakeHost{status: 2}, []string{"facts"}, "exit status 2"},
		{"another program arrived", fakeHost{status: 1, digest: bundle.Of(nil)}, []string{"facts", "sftp", "version"}, "it reports the digest"},
		{"no file transfer", fakeHost{status: 1, noFiles: true}, []string{"facts"}, ErrNoSFTP.Error()},
		{"PowerShell", fakeHost{status: 1, text: true, digest: program.Digest}, []string{"facts", "sftp", "version", "facts", "facts --text", "facts --text"}, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			a := NewClient(&tt.host, program).Agent(Target{User: DefaultUser, Address: "h:22"})
			var err error
			for i := 0; i < 2 && err == nil; i++ {
				q := ask{words: []string{wordFacts}, stdout: &answer{}}
				if tt.host.text {
					q.stdin = func(_ context.Context, w io.Writer) error { _, err := w.Write([]byte{0, 1, 2}); return err }
				}
				err = a.run(t.Context(), q)
			}
			if text := textOf(err); tt.err == "" && err != nil || !strings.Contains(text, tt.err) {
				t.Errorf("%q, want %q", text, tt.err)
			}
			if diff := cmp.Diff(tt.want, tt.host.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnObserverUploadsNothing(t *testing.T) {
	program := Program{Path: programPath, Digest: bundle.Of([]byte("agent")), Size: 5}
	target := Target{User: DefaultUser, Address: "h:22"}
	for _, tt := range []struct {
		what string
		host fakeHost
		want string
	}{
		{"the agent is there", fakeHost{uploaded: true}, ""},
		{"cmd does not find it", fakeHost{status: 1}, "the node agent " + programPath + " is not on Administrator@h, and nothing was copied there"},
		{"no file transfer", fakeHost{status: 9009, noFiles: true}, "the node agent " + programPath + " is not on Administrator@h, and nothing was copied there: " + ErrNoSFTP.Error()},
	} {
		_, err := NewObserver(&tt.host, program).Agent(target).Facts(t.Context())
		lacks := (*NotInstalledError)(nil)
		if got := textOf(err); got != tt.want || errors.As(err, &lacks) != (tt.want != "") || tt.want != "" && Fix(err) == "" {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		if tt.want != "" && tt.host.uploaded {
			t.Errorf("%s: it was uploaded", tt.what)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
