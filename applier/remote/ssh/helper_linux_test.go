package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/test/sshtest"
)

const fakeNode = "wmco/internal/test/sshtest/testdata/fakenode"

var (
	programs sshtest.Programs
	fake     remote.Program
)

func TestMain(m *testing.M) {
	status, err := withPrograms(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func withPrograms(m *testing.M) (int, error) {
	var err error
	if programs, err = sshtest.Build(context.Background()); err != nil {
		return 1, err
	}
	defer programs.Remove() //nolint:errcheck // a folder for temporary files
	path, err := programs.Go(context.Background(), fakeNode)
	if err != nil {
		return 1, err
	}
	if fake, err = remote.FileProgram(path); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// generous are limits that a busy computer keeps. A test of one of them sets that one.
func generous() Limits {
	return Limits{
		Dial: patience, Handshake: patience, Channel: patience, Silence: patience, KeepAlive: 20 * time.Second, Missed: 3, Kept: patience,
	}
}

// patience is how long a test waits for what must come: no computer is that busy.
const patience = 5 * time.Minute

// allCuts reports whether lines are cut as often, and hosts are as many, as make ci-full wants: WMCO_ALL_CALLS is set.
func allCuts() bool { return os.Getenv("WMCO_ALL_CALLS") != "" }

// await waits until something is so.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waiting for %s took more than %s", what, patience)
			return
		}
	}
}

// started returns a function that reports whether a command was started on the host since then.
func started(s *sshtest.Server, command string) func() bool {
	count := func() (n int) {
		for _, w := range words(s) {
			if strings.HasPrefix(w, command) {
				n++
			}
		}
		return n
	}
	before := count()
	return func() bool { return count() > before }
}

// dialer returns a dialer with the server's key and an empty known_hosts file.
func dialer(t testing.TB, s *sshtest.Server) Dialer {
	t.Helper()
	return Dialer{Limits: generous(), Pins: NewKnownHosts(filepath.Join(t.TempDir(), "known_hosts")), Signers: keys(s.Key)}
}

func keys(all ...ssh.Signer) func(context.Context) ([]ssh.Signer, error) {
	return func(context.Context) ([]ssh.Signer, error) { return all, nil }
}

func client(t testing.TB, d Dialer) *remote.Client {
	t.Helper()
	c := remote.NewClient(NewTransport(d), fake, remote.DefaultLimits())
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func at(s *sshtest.Server, address string) remote.Target {
	return remote.Target{User: s.User, Address: address}
}

// agent returns the agent behind a server, with a new client.
func agent(t testing.TB, s *sshtest.Server) *remote.Agent {
	t.Helper()
	return client(t, dialer(t, s)).AgentFor(at(s, s.Address))
}

// small returns a request with files of a few hundred bytes. The first one depends on the version.
func small(t testing.TB, files, version int) remote.Request {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	l.Directories = []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}}
	for i := range files {
		data := fmt.Appendf(nil, "file %d\n", i)
		for range 40 {
			data = fmt.Appendf(data, "%x ", random.Uint64())
		}
		if i == 0 {
			data = fmt.Appendf(data, "version %d\n", version)
		}
		l.Files = append(l.Files, file(fmt.Sprintf(`C:\k\file-%03d`, i), data))
	}
	return request(t, l)
}

// large returns a request with one content that compresses badly and has several parts.
func large(t testing.TB, size int) remote.Request {
	t.Helper()
	data := make([]byte, size)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), data); err != nil {
		t.Fatal(err)
	}
	l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	l.Directories = []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}}
	l.Files = []bundle.File{file(`C:\k\large.toml`, data)}
	return request(t, l)
}

func file(path string, data []byte) bundle.File {
	return bundle.File{
		Path: path, Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
		Content: bundle.Content{Data: data},
	}
}

func request(t testing.TB, cluster bundle.Layer) remote.Request {
	t.Helper()
	cluster.Normalize()
	b := bundle.Bundle{Cluster: cluster, Node: bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: cluster.Stage}}
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	source, err := archive.FromBundle(b)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Request{Manifest: m, Source: source}
}

func quiet(protocol.Event) {}

// uploaded reports whether the host has the whole agent.
func uploaded(t testing.TB, s *sshtest.Server) bool {
	t.Helper()
	data, err := os.ReadFile(s.Path(fake.Path))
	if os.IsNotExist(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	from, err := fake.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	want, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(data, want)
}

// realAgent is the real node agent, which works on a simulated host here.
var realAgent = sync.OnceValues(func() (remote.Program, error) {
	path, err := programs.Go(context.Background(), "wmco/cmd/wmco-node", "-ldflags", "-s -w")
	if err != nil {
		return remote.Program{}, err
	}
	return remote.FileProgram(path)
})

// realHost returns a server with a simulated host, without the agent.
func realHost(t testing.TB, o sshtest.Options) (*sshtest.Server, remote.Program) {
	t.Helper()
	p, err := realAgent()
	if err != nil {
		t.Fatal(err)
	}
	s := programs.Start(t, o)
	from, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	create := exec.CommandContext(t.Context(), from.(*os.File).Name(), "--root", s.Root, "machine", "create")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("creating the host: %v\n%s", err, out)
	}
	return s, p
}

// differs returns the files of the request that are absent or different on the host.
func differs(t *testing.T, s *sshtest.Server, r remote.Request) []string {
	t.Helper()
	contents := map[string]archive.Content{}
	for _, c := range r.Source.Contents() {
		contents[string(c.Digest)] = c
	}
	var all []string
	for _, f := range r.Manifest.Layers[0].Layer.Files {
		c := contents[string(f.Digest)]
		stored, err := r.Source.Open(c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(archive.Decode(stored, c))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(s.Path(f.Path)); !bytes.Equal(got, want) {
			all = append(all, f.Path)
		}
	}
	return all
}

// kind names the type of an error, with its phase or status.
func kind(err error) string {
	var unreachable *remote.UnreachableError
	var auth *remote.AuthError
	var hostKey *remote.HostKeyError
	var command *remote.CommandError
	var interrupted *remote.InterruptedError
	var program *remote.ProgramError
	var answer *remote.AnswerError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &unreachable):
		return "unreachable: " + string(unreachable.Phase)
	case errors.As(err, &auth):
		return "auth"
	case errors.As(err, &hostKey):
		return "host key"
	case errors.As(err, &program):
		return "program"
	case errors.As(err, &answer):
		return "answer"
	case errors.As(err, &interrupted):
		return "interrupted"
	case errors.As(err, &command):
		return fmt.Sprintf("command: status %d, signal %q", command.Status, command.Signal)
	}
	return err.Error()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// settle waits until there is no problem any more.
func settle(t *testing.T, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(problem)
		}
	}
}

func mustApply(t *testing.T, a *remote.Agent, want remote.Request) {
	t.Helper()
	if r, err := a.Apply(t.Context(), want, remote.ApplyOptions{}, quiet); err != nil || r.Result != protocol.ResultApplied {
		t.Fatalf("%q, %v", r.Result, err)
	}
}

// words returns the commands that were started on the host, without the path of the program and its checksum; "" for SFTP.
func words(s *sshtest.Server) []string {
	var list []string
	for _, line := range s.Starts() {
		_, args, _ := strings.Cut(line, " ")
		args, _, _ = strings.Cut(args, " "+ownfile.Flag+" ")
		list = append(list, args)
	}
	return list
}
