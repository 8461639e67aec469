package remote

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
)

const benchHosts, benchFiles = 10, 30

// BenchmarkTenHosts brings ten machines up to date at once, thirty small files each, and does the same with rsync and
// ansible where they are installed. The metrics are milliseconds for all ten, and commands started on one machine.
func BenchmarkTenHosts(b *testing.B) {
	rsync := &contender{name: "rsync -c", run: runRsync}
	ansible := &contender{name: "ansible copy", run: runAnsible}
	for _, c := range []*contender{rsync, ansible, {name: "fresh connections", run: runFresh}, {name: "kept connections", run: runKept}} {
		b.Run(c.name, c.bench)
	}
}

type contender struct {
	name string
	// run prepares the machines and returns what makes them hold a version.
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
			b.ReportMetric(float64(starts()-before)/float64(b.N), "starts/machine")
			if version != 0 {
				to(0)
			}
		})
	}
}

// runFresh has a client for each run, as a command that somebody types.
func runFresh(b *testing.B) (func(int), func() int) {
	m := newBenchMachines(b)
	return func(version int) {
		each(m.targets, func(t Target) {
			c := m.client(b, t)
			m.bring(b, c, t, version)
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}, m.starts
}

// runKept has clients that live on, as an operator's. They have asked the machines before.
func runKept(b *testing.B) (func(int), func() int) {
	m := newBenchMachines(b)
	clients := map[Target]*Client{}
	for _, t := range m.targets {
		c := m.client(b, t)
		b.Cleanup(func() { _ = c.Close() })
		clients[t] = c
	}
	to := func(version int) {
		each(m.targets, func(t Target) { m.bring(b, clients[t], t, version) })
	}
	for _, version := range []int{0, 1, 0, 1} {
		to(version)
	}
	return to, m.starts
}

// benchMachines run the real node program. Each server has a key of its own, so each has a client; the work is spread as
// Each spreads it.
type benchMachines struct {
	targets  []Target
	servers  map[Target]*sshtest.Server
	program  Program
	requests []Request
}

func newBenchMachines(b *testing.B) *benchMachines {
	b.Helper()
	m := &benchMachines{servers: map[Target]*sshtest.Server{}, requests: []Request{small(b, benchFiles, 0), small(b, benchFiles, 1)}}
	for range benchHosts {
		s, p := realMachine(b, sshtest.Options{})
		t := at(s, s.Address)
		m.targets, m.servers[t], m.program = append(m.targets, t), s, p
	}
	return m
}

func (m *benchMachines) client(b *testing.B, t Target) *Client {
	b.Helper()
	return NewClient(dialer(b, m.servers[t]), m.program)
}

// bring brings a machine to a version.
func (m *benchMachines) bring(b *testing.B, c *Client, t Target, version int) {
	b.Helper()
	r, err := c.Machine(t).Apply(context.Background(), m.requests[version], ApplyOptions{}, quiet)
	if err != nil || r.Result != applier.ResultApplied && r.Result != applier.ResultSame {
		b.Errorf("%s: %q, %v", t, r.Result, err)
	}
}

func (m *benchMachines) starts() int { return len(m.servers[m.targets[0]].Starts()) }

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

// plainHosts are servers for other programs than ours, with the files to copy.
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
