package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
	"wmco/payload/store"
)

const benchHosts, benchFiles = 10, 30

// BenchmarkTenHosts updates ten hosts at once, thirty small files each, and does the same with rsync and ansible if they are
// installed. The metrics are milliseconds for all ten, and commands started on one host.
func BenchmarkTenHosts(b *testing.B) {
	rsync := &contender{name: "rsync -c", run: runRsync}
	ansible := &contender{name: "ansible copy", run: runAnsible}
	for _, c := range []*contender{rsync, ansible, {name: "fresh connections", run: runFresh}, {name: "fresh connections that do nothing", run: runNothing}, {name: "kept connections", run: runKept}} {
		b.Run(c.name, c.bench)
	}
}

type contender struct {
	name string
	// run prepares the hosts. It returns a function that brings them to a version, and one that counts the commands.
	run func(b *testing.B) (to func(version int), starts func() int)
}

func (c *contender) bench(b *testing.B) {
	to, starts := c.run(b)
	to(0)
	for _, kind := range []struct {
		name string
		step int
	}{{"nothing changed", 0}, {"one file changed", 1}} {
		b.Run(kind.name, func(b *testing.B) {
			before, version := starts(), 0
			for b.Loop() {
				version = (version + kind.step) % 2
				to(version)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms")
			b.ReportMetric(float64(starts()-before)/float64(b.N), "starts/host")
			if version != 0 {
				to(0)
			}
		})
	}
}

// BenchmarkFirstContact is the upload of the agent to ten hosts at once that lack it, until each has answered.
func BenchmarkFirstContact(b *testing.B) {
	m := newBenchSetup(b)
	for b.Loop() {
		b.StopTimer()
		for _, s := range m.servers {
			if err := os.RemoveAll(s.Path(`C:\Windows\wmco`)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		each(m.targets, func(t remote.Target) {
			c := m.client(b, t)
			if _, err := c.AgentFor(t).Facts(context.Background()); err != nil {
				b.Error(err)
			}
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms")
	b.ReportMetric(float64(m.program.Size)/1e6*benchHosts, "MB")
}

// runFresh has a new client for each run, as a command that a person types.
func runFresh(b *testing.B) (func(int), func() int) {
	m := newBenchSetup(b)
	return func(version int) {
		each(m.targets, func(t remote.Target) {
			c := m.client(b, t)
			m.bring(b, c, t, version)
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}, m.starts
}

// runNothing has a new client for each run, whose command names no program: what no program on a host can be faster than.
func runNothing(b *testing.B) (func(int), func() int) {
	m := newBenchSetup(b)
	return func(int) {
		each(m.targets, func(t remote.Target) {
			transport := NewTransport(dialer(b, m.servers[t]))
			err := transport.Run(context.Background(), t, remote.Command{Line: "nothing", Name: "nothing", Stdout: silent})
			if ended := (*remote.CommandError)(nil); !errors.As(err, &ended) {
				b.Error(err)
			}
			if err := transport.Close(); err != nil {
				b.Error(err)
			}
		})
	}, m.starts
}

// silent reads what a command prints.
func silent(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// runKept has clients that stay, as an operator's.
func runKept(b *testing.B) (func(int), func() int) {
	m := newBenchSetup(b)
	clients := map[remote.Target]*remote.Client{}
	for _, t := range m.targets {
		c := m.client(b, t)
		b.Cleanup(func() { _ = c.Close() })
		clients[t] = c
	}
	to := func(version int) {
		each(m.targets, func(t remote.Target) { m.bring(b, clients[t], t, version) })
	}
	for _, version := range []int{0, 1, 0, 1} {
		to(version)
	}
	return to, m.starts
}

// benchSetup are hosts with the real agent. Each server has a key of its own, so each has a client.
type benchSetup struct {
	targets  []remote.Target
	servers  map[remote.Target]*sshtest.Server
	program  remote.Program
	requests []remote.Request
}

func newBenchSetup(b *testing.B) *benchSetup {
	b.Helper()
	m := &benchSetup{servers: map[remote.Target]*sshtest.Server{}, requests: []remote.Request{small(b, benchFiles, 0), small(b, benchFiles, 1)}}
	for range benchHosts {
		s, p := realHost(b, sshtest.Options{})
		t := at(s, s.Address)
		m.targets, m.servers[t], m.program = append(m.targets, t), s, p
	}
	return m
}

func (m *benchSetup) client(b *testing.B, t remote.Target) *remote.Client {
	b.Helper()
	return remote.NewClient(NewTransport(dialer(b, m.servers[t])), m.program, remote.DefaultLimits())
}

// bring applies a version to a host.
func (m *benchSetup) bring(b *testing.B, c *remote.Client, t remote.Target, version int) {
	b.Helper()
	r, err := c.AgentFor(t).Apply(context.Background(), m.requests[version], remote.ApplyOptions{}, quiet)
	if err != nil || r.Result != protocol.ResultApplied && r.Result != protocol.ResultSame {
		b.Errorf("%s: %q, %v", t, r.Result, err)
	}
}

func (m *benchSetup) starts() int { return len(m.servers[m.targets[0]].Starts()) }

func each[T any](all []T, work func(T)) {
	done := make(chan struct{})
	for _, x := range all {
		go func() {
			work(x)
			done <- struct{}{}
		}()
	}
	for range all {
		<-done
	}
}

// plainHosts starts servers for rsync and ansible, and returns a folder for the files to copy.
func plainHosts(b *testing.B, program string) ([]*sshtest.Server, string) {
	b.Helper()
	if _, err := exec.LookPath(program); err != nil {
		b.Skipf("needs %s", program)
	}
	var servers []*sshtest.Server
	for range benchHosts {
		servers = append(servers, programs.Start(b, sshtest.Options{Settings: simulated.Settings{Shell: simulated.ShellPlain}}))
	}
	return servers, b.TempDir()
}

// lay writes the files of a version.
func lay(b *testing.B, folder string, version int) {
	b.Helper()
	for i, f := range small(b, benchFiles, version).Manifest.Layers[0].Layer.Files {
		path := filepath.Join(folder, fmt.Sprintf("file-%03d", i))
		if old, _ := os.ReadFile(path); string(old) != string(f.Content.Data) {
			if err := os.WriteFile(path, f.Content.Data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func sshOptions(s *sshtest.Server, folder string) string {
	return fmt.Sprintf("-F none -i %s -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=%s/known_hosts -o LogLevel=ERROR", s.KeyFile, folder)
}

func runRsync(b *testing.B) (func(int), func() int) {
	servers, folder := plainHosts(b, "rsync")
	from := filepath.Join(folder, "from")
	if err := os.Mkdir(from, 0o700); err != nil {
		b.Fatal(err)
	}
	to := func(version int) {
		lay(b, from, version)
		each(servers, func(s *sshtest.Server) {
			host, port, _ := strings.Cut(s.Address, ":")
			ssh := "ssh " + sshOptions(s, folder) + " -p " + port
			out, err := exec.Command("rsync", "-rc", "-e", ssh, from+"/", s.User+"@"+host+":"+s.Root+"/to/").CombinedOutput()
			if err != nil {
				b.Errorf("rsync: %v\n%s", err, out)
			}
		})
	}
	return to, func() int { return len(servers[0].Starts()) }
}

func runAnsible(b *testing.B) (func(int), func() int) {
	servers, folder := plainHosts(b, "ansible")
	from := filepath.Join(folder, "from")
	if err := os.Mkdir(from, 0o700); err != nil {
		b.Fatal(err)
	}
	var inventory strings.Builder
	for _, s := range servers {
		host, port, _ := strings.Cut(s.Address, ":")
		fmt.Fprintf(&inventory, "%s ansible_port=%s ansible_user=%s ansible_ssh_common_args='%s' folder=%s/to\n", host, port, s.User, sshOptions(s, folder), s.Root)
	}
	hosts := filepath.Join(folder, "hosts")
	if err := os.WriteFile(hosts, []byte(inventory.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	to := func(version int) {
		lay(b, from, version)
		cmd := exec.Command("ansible", "all", "-i", hosts, "-f", fmt.Sprint(benchHosts), "-m", "copy", "-a", "src="+from+"/ dest={{folder}}/")
		cmd.Env = append(os.Environ(), "ANSIBLE_HOME="+folder, "ANSIBLE_LOCAL_TEMP="+folder, "HOME="+folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Errorf("ansible: %v\n%s", err, out)
		}
	}
	return to, func() int { return len(servers[0].Starts()) }
}

// shipped returns a request with the whole payload, if it was built.
func shipped(b *testing.B) (remote.Request, *store.Store) {
	b.Helper()
	s, err := store.Open(filepath.Join("..", "..", "bin", "payload"))
	if err != nil {
		b.Skip("needs the payload: make payload")
	}
	l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	folders := map[string]bool{}
	for _, e := range s.Entries() {
		folders[bundle.Dir(e.Path)] = true
		l.Payload = append(l.Payload, bundle.Payload{Path: e.Path, Component: e.Name, Version: e.Version, Digest: e.Raw.Digest, Size: e.Raw.Size, Impact: bundle.ImpactNone})
	}
	for folder := range folders {
		l.Directories = append(l.Directories, bundle.Directory{Path: folder, Access: bundle.AccessUsers})
	}
	r := request(b, l)
	r.Source = executables{s}
	return r, s
}

// executables are the source of a payload's contents.
type executables struct{ *store.Store }

func (e executables) Contents() []archive.Content {
	var all []archive.Content
	for _, x := range e.Entries() {
		all = append(all, archive.Content{Digest: x.Raw.Digest, SHA256: strings.TrimPrefix(string(x.Raw.Digest), "sha256:"), Size: x.Raw.Size, Stored: x.Stored.Size})
	}
	return all
}

func (e executables) Open(sha256 string) (io.ReadCloser, error) {
	for _, x := range e.Entries() {
		if string(x.Raw.Digest) == "sha256:"+sha256 {
			return e.Stored(x.Name)
		}
	}
	return nil, os.ErrNotExist
}

// BenchmarkPayload applies the whole payload to an empty host, next to `ssh 'cat > file; sync'` of the uncompressed bytes: on
// loopback, and at 100 Mbit/s.
func BenchmarkPayload(b *testing.B) {
	want, from := shipped(b)
	raw := unpack(b, from)
	for _, network := range []struct {
		name string
		rate int64
	}{{"loopback", 0}, {"100 Mbit/s", 100e6 / 8}} {
		b.Run("cat, "+network.name, func(b *testing.B) {
			for b.Loop() {
				catRaw(b, raw, network.rate)
			}
		})
		b.Run("apply, "+network.name, func(b *testing.B) {
			for b.Loop() {
				applyPayload(b, want, network.rate)
			}
		})
	}
}

// unpack writes all executables one after another into a file.
func unpack(b *testing.B, from *store.Store) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "raw")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	for _, e := range from.Entries() {
		raw, err := from.Raw(e.Name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(out, raw); err != nil {
			b.Fatal(err)
		}
		_ = raw.Close()
	}
	return path
}

func applyPayload(b *testing.B, want remote.Request, rate int64) {
	b.Helper()
	b.StopTimer()
	s, p := realHost(b, sshtest.Options{})
	line := sshtest.NewLine(b, s.Address, sshtest.LineOptions{Rate: rate})
	d := dialer(b, s)
	d.Limits.Silence = time.Hour
	c := remote.NewClient(NewTransport(d), p, remote.DefaultLimits())
	defer c.Close()
	b.StartTimer()
	r, err := c.AgentFor(at(s, line.Address)).Apply(b.Context(), want, remote.ApplyOptions{}, quiet)
	if err != nil || r.Result != protocol.ResultApplied {
		b.Fatalf("%q, %v", r.Result, err)
	}
	stats := line.Stats()
	b.ReportMetric(float64(stats.Up)/1e6, "MB-up")
}

func catRaw(b *testing.B, raw string, rate int64) {
	b.Helper()
	b.StopTimer()
	s := programs.Start(b, sshtest.Options{Settings: simulated.Settings{Shell: simulated.ShellPlain}})
	line := sshtest.NewLine(b, s.Address, sshtest.LineOptions{Rate: rate})
	host, port, _ := strings.Cut(line.Address, ":")
	args := append(strings.Fields(sshOptions(s, b.TempDir())), "-p", port, s.User+"@"+host, "cat > "+s.Root+"/all; sync")
	cmd := exec.CommandContext(b.Context(), "ssh", args...)
	stdin, err := os.Open(raw)
	if err != nil {
		b.Fatal(err)
	}
	defer stdin.Close()
	cmd.Stdin = stdin
	b.StartTimer()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.ReportMetric(float64(line.Stats().Up)/1e6, "MB-up")
}
