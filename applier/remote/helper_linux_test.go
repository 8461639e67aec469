package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/sshtest"
)

const fakeNode = "wmco/internal/sshtest/testdata/fakenode"

var (
	programs sshtest.Programs
	fake     Program
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
	if fake, err = FileProgram(path, agentPath); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func agentPath(d bundle.Digest) string { return `C:\k\agent\wmco-node-` + d.Short() + `.exe` }

// quick are limits for tests.
func quick() Limits {
	return Limits{
		Dial: 5 * time.Second, Handshake: 20 * time.Second, Silence: time.Minute,
		KeepAlive: 5 * time.Second, Missed: 3, Kept: time.Minute,
	}
}

// dialer opens the server with its key and with known_hosts of the test's own.
func dialer(t testing.TB, s *sshtest.Server) Dialer {
	t.Helper()
	return Dialer{Limits: quick(), Pins: NewKnownHosts(filepath.Join(t.TempDir(), "known_hosts")), Signers: keys(s.Key)}
}

func keys(all ...ssh.Signer) func(context.Context) ([]ssh.Signer, error) {
	return func(context.Context) ([]ssh.Signer, error) { return all, nil }
}

func client(t testing.TB, d Dialer) *Client {
	t.Helper()
	c := NewClient(d, fake)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func at(s *sshtest.Server, address string) Target { return Target{User: s.User, Address: address} }

// machine is the server's, with a client of its own.
func machine(t testing.TB, s *sshtest.Server) *Machine {
	t.Helper()
	return client(t, dialer(t, s)).Machine(at(s, s.Address))
}

// small is a request with so many files of a few hundred bytes; version tells apart the contents of the first.
func small(t testing.TB, files, version int) Request {
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

// large is a request with one content that compresses badly and has several parts.
func large(t testing.TB, size int) Request {
	t.Helper()
	data := make([]byte, size)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), data); err != nil {
		t.Fatal(err)
	}
	l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	l.Directories = []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}}
	l.Files = []bundle.File{file(`C:\k\large.exe`, data)}
	return request(t, l)
}

func file(path string, data []byte) bundle.File {
	return bundle.File{
		Path: path, Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
		Content: bundle.Content{Data: data},
	}
}

func request(t testing.TB, cluster bundle.Layer) Request {
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
	return Request{Manifest: m, Source: source}
}

func quiet(applier.Event) {}

// uploaded tells whether the machine has the whole program.
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
