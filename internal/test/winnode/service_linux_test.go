package winnode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
)

// The log folders of the services.
const (
	logsAgent      = `C:\var\log\wicd`
	logsContainerd = `C:\var\log\containerd`
	logsKubelet    = `C:\var\log\kubelet`
)

// Limits of these logs. They are reached within seconds.
const (
	logBytes = 20000
	logFiles = 2
)

// keptNode returns a node with the node agent as a service, and with services whose logs exceed their limits.
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

// TestTheAgentAsAService runs the node agent under the service manager of Wine.
func TestTheAgentAsAService(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t), keptNode(t, "1s")
	m.applied(t, n)
	for _, c := range []struct {
		name string
		run  func(*testing.T, machine, bundletest.Node)
	}{
		{"it repairs drift", repairs},
		{"it copies its ledger", copiesLedger},
		{"it limits the size and number of logs", limitsLogs},
		{"it stops", stops},
		{"it restarts when its configuration changes", restarts},
		{"another bundle changes its arguments", takesArguments},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(t, m, n) }) {
			t.FailNow()
		}
	}
}

func repairs(t *testing.T, m machine, n bundletest.Node) {
	m.WriteFile(t, pathConfig, []byte("maxPods: 1\n"))
	m.reg(t, "add", keyVariables, "/v", "NO_PROXY", "/d", "everything")
	m.kill(t, "windows_exporter.exe")
	eventually(t, "the host matches the bundle", func() bool {
		return m.wmco(t, n.Archive(t, nil), "verify").ExitCode == 0
	})
	eventually(t, "the log has the repair", func() bool {
		return strings.Contains(m.logs(t, "INFO"), `entry="service windows_exporter" reason="not running"`)
	})
	if text := m.logs(t, "WARNING") + m.logs(t, "ERROR"); text != "" {
		t.Errorf("warnings and errors: %s", text)
	}
}

// copiesLedger waits for the copy of the ledger, also after a change of it.
func copiesLedger(t *testing.T, m machine, _ bundletest.Node) {
	const path = logsAgent + `\` + bundle.LedgerCopy
	for _, what := range []string{"the copy of the ledger", "the copy of the ledger after a change"} {
		eventually(t, what, func() bool {
			text, err := os.ReadFile(m.Path(path))
			return err == nil && strings.HasPrefix(string(text), "{") && strings.Contains(string(text), `"entry": "service windows_exporter"`)
		})
		m.WriteFile(t, path, []byte("changed"))
	}
}

// logs returns what the agent has logged from a level up, rotated files included.
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

// limitsLogs waits until rotated logs have been removed, and checks the number of the others all the time.
func limitsLogs(t *testing.T, m machine, _ bundletest.Node) {
	for _, folder := range []string{logsContainerd, logsKubelet} {
		seen := map[string]bool{}
		eventually(t, "logs in "+folder+" were rotated and removed", func() bool {
			now := m.rotated(t, folder)
			// The agent has not yet counted those that were rotated since its last check.
			if len(now) > logFiles+3 {
				t.Errorf("%d rotated logs: %q", len(now), now)
			}
			for _, name := range now {
				seen[name] = true
			}
			return len(seen) > logFiles+2 && len(now) < len(seen)
		})
	}
	// The log grows by 50 kB a second, and the agent checks it every second, or later on a busy computer.
	info, err := os.Stat(m.Path(logsContainerd + `\containerd.log`))
	if err != nil || info.Size() > 50*logBytes {
		t.Errorf("the log of containerd: %v, %v", info, err)
	}
	if len(m.rotated(t, logsAgent)) == 0 {
		t.Error("the log of the agent is not rotated")
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

// sc runs sc.exe for the agent.
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
		t.Errorf("the exit code is not 0: %s", text)
	}
	m.sc(t, "start")
	m.agentIs(t, "RUNNING")
}

// restarts changes the configuration: the agent ends with an error, so that its recovery restarts it. Wine has no recovery.
func restarts(t *testing.T, m machine, n bundletest.Node) {
	m.reg(t, "add", keyServices+`\`+bundle.AgentService, "/v", "Environment", "/t", "REG_MULTI_SZ", "/d", "NO_PROXY=x")
	m.agentIs(t, "STOPPED")
	if text := m.sc(t, "query"); !strings.Contains(text, "WIN32_EXIT_CODE    : 1066 ") || !strings.Contains(text, "SERVICE_EXIT_CODE  : 1 ") {
		t.Errorf("the recovery would not begin: %s", text)
	}
	if text := m.logs(t, "INFO"); !strings.Contains(text, "restarting: the service was reconfigured") {
		t.Errorf("the log: %s", text)
	}
	m.sc(t, "start")
	m.agentIs(t, "RUNNING")
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o.Actions)
	}
}

func takesArguments(t *testing.T, m machine, n bundletest.Node) {
	other := n.Changed(func(n *bundletest.Node) {
		last := &n.Services[len(n.Services)-1]
		last.Argv = slices.Replace(slices.Clone(last.Argv), 3, 4, "--interval=2s")
	})
	if e := m.applied(t, other); e.Result != protocol.ResultApplied || e.Restarted != 1 {
		t.Errorf("%+v", e)
	}
	if text := m.logs(t, "INFO"); !strings.Contains(text, "interval=2s") {
		t.Errorf("the log: %s", text)
	}
}
