package winnode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/hosttest/bundletest"
	"wmco/bundle"
	"wmco/internal/winetest"
	"wmco/internal/winnode/stub"
)

// Where the services of these tests log.
const (
	logsAgent      = `C:\var\log\wicd`
	logsContainerd = `C:\var\log\containerd`
	logsKubelet    = `C:\var\log\kubelet`
)

// Bounds of these logs: so small that they are reached in seconds.
const (
	logBytes = 20000
	logFiles = 2
)

// keptNode is a node with the node program as its service, and with services that log more than they may.
func keptNode(t *testing.T, interval string) bundletest.Node {
	t.Helper()
	n := newNode(t)
	agent := `C:\k\agent\wmco-node-` + bundle.Of(build(t).node).Short() + ".exe"
	n.Programs[agent] = string(build(t).node)
	n.Programs[pathContainerd] = stand(t, stub.Behaviour{Pipes: []string{pipeContainerd}, Log: logsContainerd + `\containerd.log`, LogBytes: 1000, LogMilliseconds: 20})
	n.Programs[pathKubelet] = stand(t, stub.Behaviour{HTTP: []string{addressKubelet}, LogBytes: 1000, LogMilliseconds: 50})
	for _, folder := range []string{logsAgent, logsContainerd, logsKubelet} {
		n.Files[folder+`\.keep`] = ""
	}
	n.Services = n.Services[:3]
	n.Services[0].Logs = []bundle.Log{logOf(logsContainerd+`\containerd.log`, bundle.RotationAgent)}
	kubelet := &n.Services[1]
	kubelet.Argv = []string{pathRunner, `-log-file=` + logsKubelet + `\kubelet.log`, "-log-file-size=20k", "-flush-interval=1s", pathKubelet}
	kubelet.Logs = []bundle.Log{logOf(logsKubelet+`\kubelet.log`, bundle.RotationWrapper)}
	daemon := service(bundle.AgentService, bundle.ProbeRunning, "", []string{agent, "run", "--service", "--interval=" + interval, "--log-dir=" + logsAgent}, agent)
	info := logOf(logsAgent+`\`+bundle.AgentService+".exe.INFO", bundle.RotationAgent)
	info.SizeBytes, info.Pattern = 500, bundle.AgentService+".exe.INFO-*.log"
	daemon.Logs = []bundle.Log{info}
	n.Services = append(n.Services, daemon)
	return n
}

func logOf(path string, by bundle.RotationKind) bundle.Log {
	pattern := strings.TrimSuffix(bundle.Base(path), ".log") + "-*.log"
	return bundle.Log{Path: path, Rotation: by, Pattern: pattern, SizeBytes: logBytes, Files: logFiles}
}

// TestTheServiceKeepsItsNode lets the node program run as a service under the real service manager.
func TestTheServiceKeepsItsNode(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t), keptNode(t, "1s")
	m.applied(t, n)
	for _, c := range []struct {
		name string
		run  func(*testing.T, machine, bundletest.Node)
	}{
		{"it repairs what differs", keeps},
		{"logs are bounded in size and number", bounds},
		{"it stops when it is asked to", stops},
		{"it ends when it is configured anew", restarts},
		{"it runs with the arguments of another bundle", argues},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(t, m, n) }) {
			t.FailNow()
		}
	}
}

func keeps(t *testing.T, m machine, n bundletest.Node) {
	m.WriteFile(t, pathConfig, []byte("maxPods: 1\n"))
	m.reg(t, "add", keyVariables, "/v", "NO_PROXY", "/d", "everything")
	m.kill(t, "windows_exporter.exe")
	eventually(t, "the machine is as the bundle says", func() bool {
		return m.wmco(t, n.Archive(t, nil), "verify").ExitCode == 0
	})
	eventually(t, "the log tells so", func() bool {
		return strings.Contains(m.logs(t, "INFO"), `entry="service windows_exporter" reason="not running"`)
	})
	if text := m.logs(t, "WARNING") + m.logs(t, "ERROR"); text != "" {
		t.Errorf("warnings and errors: %s", text)
	}
}

// logs are what the service has logged from a level up, with what was rotated.
func (m machine) logs(t *testing.T, level string) string {
	t.Helper()
	name := m.Path(logsAgent + `\` + bundle.AgentService + ".exe." + level)
	rotated, err := filepath.Glob(name + "-*.log")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, path := range append(rotated, name) {
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

// bounds waits until rotated logs were removed, and looks at the others meanwhile.
func bounds(t *testing.T, m machine, _ bundletest.Node) {
	for _, folder := range []string{logsContainerd, logsKubelet} {
		seen := map[string]bool{}
		eventually(t, "logs in "+folder+" were rotated and removed", func() bool {
			now := m.rotated(t, folder)
			// Those that came since the last look are not bounded yet.
			if len(now) > logFiles+3 {
				t.Errorf("%d rotated logs: %q", len(now), now)
			}
			for _, name := range now {
				seen[name] = true
			}
			return len(seen) > logFiles+2
		})
		if len(m.rotated(t, folder)) == len(seen) {
			t.Errorf("none of %d rotated logs was removed", len(seen))
		}
	}
	// 50 kB come in a second, and the service looks every second: on a busy machine it may be late.
	info, err := os.Stat(m.Path(logsContainerd + `\containerd.log`))
	if err != nil || info.Size() > 50*logBytes {
		t.Errorf("the log that containerd has open: %v, %v", info, err)
	}
	if len(m.rotated(t, logsAgent)) == 0 {
		t.Error("the service's own log is not rotated")
	}
}

func (m machine) rotated(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(m.Path(folder) + "/*-2*.log")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// sc asks Wine's tool for the service manager.
func (m machine) sc(t *testing.T, verb string) string {
	t.Helper()
	return m.Run(t, winetest.Command{Path: "sc", Args: []string{verb, bundle.AgentService}}).Stdout
}

func (m machine) agentIs(t *testing.T, state string) {
	t.Helper()
	eventually(t, "the service is "+state, func() bool { return strings.Contains(m.sc(t, "query"), state) })
}

func stops(t *testing.T, m machine, _ bundletest.Node) {
	m.agentIs(t, "RUNNING")
	begin := time.Now()
	m.sc(t, "stop")
	m.agentIs(t, "STOPPED")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if text := m.sc(t, "query"); !strings.Contains(text, "WIN32_EXIT_CODE    : 0 ") {
		t.Errorf("it did not end well: %s", text)
	}
	m.sc(t, "start")
	m.agentIs(t, "RUNNING")
}

// restarts: Wine has no recovery, so that the service stays as it ended.
func restarts(t *testing.T, m machine, n bundletest.Node) {
	m.reg(t, "add", keyServices+`\`+bundle.AgentService, "/v", "Environment", "/t", "REG_MULTI_SZ", "/d", "NO_PROXY=x")
	m.agentIs(t, "STOPPED")
	if text := m.sc(t, "query"); !strings.Contains(text, "WIN32_EXIT_CODE    : 1066 ") || !strings.Contains(text, "SERVICE_EXIT_CODE  : 1 ") {
		t.Errorf("it ended so that its recovery does not begin: %s", text)
	}
	if text := m.logs(t, "INFO"); !strings.Contains(text, "restarting: the service was configured anew") {
		t.Errorf("the log: %s", text)
	}
	m.sc(t, "start")
	m.agentIs(t, "RUNNING")
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o.Actions)
	}
}

func argues(t *testing.T, m machine, n bundletest.Node) {
	other := n.Changed(func(n *bundletest.Node) {
		last := &n.Services[len(n.Services)-1]
		last.Argv = slices.Replace(slices.Clone(last.Argv), 3, 4, "--interval=2s")
	})
	if e := m.applied(t, other); e.Result != applier.ResultApplied || e.Restarted != 1 {
		t.Errorf("%+v", e)
	}
	if text := m.logs(t, "INFO"); !strings.Contains(text, "interval=2s") {
		t.Errorf("the log: %s", text)
	}
}
