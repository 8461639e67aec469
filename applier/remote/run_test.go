package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/ownfile"
	"wmco/bundle"
)

const programPath = `C:\Windows\wmco\wmco-node-0123456789ab.exe`

// agentText stands for the agent.
const agentText = "agent"

// agentSum is its checksum.
const agentSum = "01234567"

// fakeHost is a Transport to one host. Its agent answers with its facts.
type fakeHost struct {
	t     *testing.T
	files fakeFiles
	// status is what its shell exits with if there is no agent; text is set if it damages other input than text.
	status  int
	text    bool
	noFiles bool
	digest  bundle.Digest
	// fails is the status of the agent; goes is set if it is deleted before it is run a second time. Damaged is the status of a damaged
	// agent: its own, or that of a shell which cannot start it.
	fails, damaged int
	goes           bool
	// asked are the commands, without the path of the program.
	asked []string
}

func (h *fakeHost) Connect(context.Context, Target) error { return nil }

func (h *fakeHost) Close() error { return nil }

func (h *fakeHost) Run(ctx context.Context, t Target, c Command) error {
	_, words, _ := strings.Cut(c.Line, " ")
	words = strings.TrimSuffix(words, " "+ownfile.Flag+" "+agentSum)
	h.asked = append(h.asked, words)
	failed := &CommandError{Target: t, Command: c.Name, Status: h.status}
	program := h.files[strings.TrimPrefix(sftpPath(programPath), "/")]
	if program == nil || h.goes && len(h.asked) == 2 {
		if program != nil {
			clear(h.files)
		}
		return errors.Join(failed, c.Stdout(strings.NewReader("Welcome!\r\n")))
	}
	if string(program.Data) != agentText {
		failed.Status = h.damaged
		return failed
	}
	if h.fails != 0 {
		failed.Status = h.fails
		return failed
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
	return do(h.files)
}

// fakeFiles are the files of a fakeHost.
type fakeFiles map[string]*fstest.MapFile

func (f fakeFiles) Folder(path string) ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(fstest.MapFS(f), strings.TrimPrefix(path, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []fs.FileInfo
	for _, e := range entries {
		info, _ := e.Info()
		all = append(all, info)
	}
	return all, err
}

func (f fakeFiles) Read(path string, to io.Writer, size int64) error {
	file := f[strings.TrimPrefix(path, "/")]
	if file == nil {
		return fs.ErrNotExist
	}
	_, err := to.Write(file.Data[:min(size, int64(len(file.Data)))])
	return err
}

func (f fakeFiles) Write(path string, from io.Reader, at, _ int64) error {
	data, err := io.ReadAll(from)
	if at > 0 {
		data = append(slices.Clip(f[strings.TrimPrefix(path, "/")].Data[:at]), data...)
	}
	if f["damages"] != nil {
		data = data[1:]
	}
	f[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: data}
	return err
}

func (f fakeFiles) Replace(from, to string) error {
	if f[strings.TrimPrefix(from, "/")] == nil {
		return fs.ErrNotExist
	}
	f[strings.TrimPrefix(to, "/")] = f[strings.TrimPrefix(from, "/")]
	return f.Remove(from)
}

func (f fakeFiles) Remove(path string) error {
	delete(f, strings.TrimPrefix(path, "/"))
	return nil
}

func having(path, text string) fakeFiles {
	return fakeFiles{strings.TrimPrefix(sftpPath(path), "/"): &fstest.MapFile{Data: []byte(text)}}
}

func theAgent() Program {
	return Program{Path: programPath, Digest: bundle.Of([]byte(agentText)), Size: int64(len(agentText)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(agentText)), nil
	}, Sum: agentSum}
}

func TestADamagedAgentIsUploadedAgainAndItGetsTextWhereItMust(t *testing.T) {
	digest := theAgent().Digest
	uploads := []string{"facts", "sftp", "version", "facts", "facts"}
	for _, tt := range []struct {
		what string
		host fakeHost
		want []string
		err  string
	}{
		{"the agent is there", fakeHost{files: having(programPath, agentText)}, []string{"facts", "facts"}, ""},
		{"it is missing, says cmd", fakeHost{status: 1, digest: digest}, uploads, ""},
		{"it is missing, says sh", fakeHost{status: 127, digest: digest}, uploads, ""},
		{"it finds itself damaged", fakeHost{files: having(programPath, "agenT"), damaged: 125, digest: digest}, uploads, ""},
		{"it finds itself damaged, and PowerShell says 1", fakeHost{files: having(programPath, "agenT"), damaged: 1, digest: digest}, uploads, ""},
		{"zeros, which Windows does not start", fakeHost{files: having(programPath, "\x00\x00\x00\x00\x00"), damaged: 216, digest: digest}, uploads, ""},
		{"half of it, which Windows does not start", fakeHost{files: having(programPath, "age"), damaged: 193, digest: digest}, uploads, ""},
		{"it crashes before it checks itself", fakeHost{files: having(programPath, "agenT"), damaged: 2, digest: digest}, uploads, ""},
		{"it is killed before it checks itself", fakeHost{files: having(programPath, "agenT"), damaged: NoStatus, digest: digest}, uploads, ""},
		{"it ends before it checks itself", fakeHost{files: having(programPath, "agenT"), damaged: 130, digest: digest}, uploads, ""},
		{"it goes, and cmd does not find it", fakeHost{files: having(programPath, agentText), goes: true, status: 1, digest: digest}, []string{"facts", "facts", "sftp", "version", "facts"}, ""},
		{"it goes, and sh does not find it", fakeHost{files: having(programPath, agentText), goes: true, status: 127, digest: digest}, []string{"facts", "facts", "sftp", "version", "facts"}, ""},
		{"the agent's own status, of one that was not proven", fakeHost{files: having(programPath, agentText), fails: 2}, []string{"facts", "sftp"}, "exit status 2"},
		{"the disk loses what is written", fakeHost{status: 1, files: having(`C:\damages`, "")}, []string{"facts", "sftp"}, "another size than was written"},
		{"it does not work there", fakeHost{status: 1, digest: bundle.Of(nil)}, []string{"facts", "sftp", "version"}, "it reports the digest"},
		{"no file transfer", fakeHost{status: 1, noFiles: true}, []string{"facts"}, ErrNoSFTP.Error()},
		{"PowerShell", fakeHost{status: 1, text: true, digest: digest}, []string{"facts", "sftp", "version", "facts", "facts --text", "facts --text"}, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.host.t = t
			if tt.host.files == nil {
				tt.host.files = fakeFiles{}
			}
			if f := tt.host.files["C:/damages"]; f != nil {
				tt.host.files = fakeFiles{"damages": f}
			}
			a := NewClient(&tt.host, theAgent(), DefaultLimits()).AgentFor(Target{User: DefaultUser, Address: "h:22"})
			var err error
			for i := 0; i < 2 && err == nil; i++ {
				q := ask{words: []string{wordFacts}, stdout: &answer{}, limit: time.Minute}
				if tt.host.text {
					q.stdin = func(_ context.Context, w io.Writer) error { _, err := w.Write([]byte{0, 1, 2}); return err }
				}
				err = a.runChecked(t.Context(), q)
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

func TestAClientOverAnotherTransportKnowsWhatTheFirstOneLearned(t *testing.T) {
	// A status of the agent's own from a host that was not proven is followed by reading back.
	first, second := &fakeHost{t: t, files: having(programPath, agentText)}, &fakeHost{t: t, files: having(programPath, agentText), fails: 2}
	c := NewClient(first, theAgent(), DefaultLimits())
	to := Target{User: DefaultUser, Address: "h:22"}
	if _, err := c.AgentFor(to).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WithTransport(second).AgentFor(to).Facts(t.Context()); err == nil {
		t.Error("a failure is none")
	}
	if diff := cmp.Diff([]string{"facts"}, second.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestAClientThatObservesLeavesNothingBehind: neither on the host, which lacks the agent, nor in the client.
func TestAClientThatObservesLeavesNothingBehind(t *testing.T) {
	host := &fakeHost{t: t, files: fakeFiles{}, status: 1}
	c := NewClient(host, theAgent(), DefaultLimits())
	missing := (*NotInstalledError)(nil)
	if _, err := c.Observing().AgentFor(Target{User: DefaultUser, Address: "h:22"}).Facts(t.Context()); !errors.As(err, &missing) {
		t.Error(err)
	}
	if len(host.files) > 0 || len(c.hosts.all) > 0 {
		t.Errorf("files %v; the client knows %d hosts", host.files, len(c.hosts.all))
	}
}

func TestAnObserverUploadsNothing(t *testing.T) {
	target := Target{User: DefaultUser, Address: "h:22"}
	for _, tt := range []struct {
		what string
		host *fakeHost
		want string
	}{
		{"the agent is there", &fakeHost{files: having(programPath, agentText)}, ""},
		{"there is none", &fakeHost{status: 1}, "the node agent " + programPath + " is not on Administrator@h, and nothing was copied there"},
		{"another file has its name", &fakeHost{files: having(programPath, agentText+"x"), damaged: 125}, "the node agent " + programPath + " is not on Administrator@h, and nothing was copied there: another file has its name"},
		{"no file transfer", &fakeHost{status: 1, noFiles: true}, "the node agent " + programPath + " is not on Administrator@h, and nothing was copied there: " + ErrNoSFTP.Error()},
	} {
		tt.host.t = t
		before := len(tt.host.files)
		_, err := NewObserver(tt.host, theAgent(), DefaultLimits()).AgentFor(target).Facts(t.Context())
		lacks := (*NotInstalledError)(nil)
		if got := textOf(err); got != tt.want || errors.As(err, &lacks) != (tt.want != "") || tt.want != "" && SuggestFix(err) == "" {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		if len(tt.host.files) != before {
			t.Errorf("%s: something was uploaded", tt.what)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
