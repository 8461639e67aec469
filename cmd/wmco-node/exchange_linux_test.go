package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/seed"
	"wmco/internal/test/testenv"
	"wmco/layout"
)

// TestAgentsExchangeThemselves: the agents of older versions, and the one of this version, follow their Node on a real API server to a
// bundle with the agent of this version, back, and there again. Each process is killed at random moments; the service decides which program
// starts next.
func TestAgentsExchangeThemselves(t *testing.T) {
	for name, build := range map[string]func(testing.TB) string{
		"of this version":        program,
		"of the version before":  func(t testing.TB) string { return olderProgram(t, older[1]) },
		"of two versions before": func(t testing.TB) string { return olderProgram(t, older[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			needsOlder(t)
			bundles := []bundletest.Node{withAgent("1"), withAgent("2")}
			if name == "of this version" { // older ones know no image gateway
				bundles = []bundletest.Node{withGateway(withAgent("1")), withGateway(withAgent("2"))}
			}
			exchange(t, newPulling(t, "win-"+strings.ReplaceAll(name, " ", "-"), build(t)), program(t), bundles)
		})
	}
}

func withAgent(version string) bundletest.Node {
	return bundletest.New().Changed(func(n *bundletest.Node) {
		path := `C:\k\agent\wmco-node-` + version + `.exe`
		n.Programs[path] = "node agent " + version
		n.Services = append(n.Services, bundletest.Service(bundle.AgentService, []string{path, "run"}, nil, path))
		n.Files[`C:\k\kubelet.conf`] = "of " + version
	})
}

// withGateway adds the image gateway, which runs the program of the node agent too.
func withGateway(n bundletest.Node) bundletest.Node {
	return n.Changed(func(n *bundletest.Node) {
		path := n.Services[len(n.Services)-1].Argv[0]
		n.Services = append(n.Services, bundletest.Service(layout.Gateway, []string{path, "registry"}, nil, path))
	})
}

// killsOfARound is how often agents are killed on the way from one bundle to the other.
const killsOfARound = 10

// exchange lets the agents of the host follow from one bundle to the other. The second one has the program that is built as now.
func exchange(t *testing.T, p *pulling, now string, bundles []bundletest.Node) {
	t.Helper()
	p.mustApply(t, bundles[0])
	newer := simulated{program: now, root: p.root}
	random := seed.New(t) // of times: older programs cannot be killed at a change
	var log strings.Builder
	killed := 0
	for round := 1; round < 6; round++ {
		n := bundles[round%2]
		newer.stage(t, n)
		digest := p.publish(t, n)
		applied := func() bool { return p.hasApplied(t, digest) }
		left := killsOfARound
		if err := testenv.Eventually(t.Context(), "the report", func() bool {
			host, patience := p.simulated, time.Minute
			if p.isSecond(t) {
				host = newer
			}
			if left > 0 {
				patience = time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
			}
			left--
			killed += runFor(t, host.command(t, nil, "run", "--kubeconfig", p.kubeconfig, "--interval", "1s"), patience, &log, applied)
			return applied()
		}); err != nil {
			t.Fatalf("round %d: %v\n%s\n%s", round, err, p.reported(t), log.String())
		}
		fresh := newSimulated(t, now)
		fresh.mustApply(t, n)
		want, got := fresh.files(t), newer.files(t)
		if round%2 == 0 && p.program != now {
			forgetGuard(got) // an older program does not know it; this version removes it when it is back
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d: not as on a host that only had this bundle (-want +got):\n%s", round, diff)
		}
	}
	var events corev1.EventList
	if err := p.admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == p.node && e.Type == corev1.EventTypeWarning {
			t.Errorf("%s: %s", e.Reason, e.Message)
		}
	}
	t.Logf("%d killed", killed)
}

// stage copies the executables of a bundle ahead, as applier/remote does: contents that the host then lacks are sent again.
func (s simulated) stage(t *testing.T, n bundletest.Node) {
	t.Helper()
	missing := s.missing(t, n)
	var r answer
	for range 2 {
		if r = s.run(t, n.Archive(t, missing), "stage"); r.status == 0 {
			return
		}
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		e, err := protocol.DecodeEvent([]byte(lines[len(lines)-1]))
		if err != nil {
			t.Fatal(err)
		}
		missing = e.Missing
	}
	t.Fatalf("stage: %d, %s", r.status, r.stderr)
}

func forgetGuard(files map[string]string) {
	for path, text := range files {
		if strings.HasPrefix(path, ".machine/services") && strings.Contains(text, "Name:"+bundle.GuardService+" ") {
			delete(files, path)
		}
	}
}

// isSecond reports whether the agent's service has the second program.
func (p *pulling) isSecond(t *testing.T) bool {
	t.Helper()
	for path, text := range p.files(t) {
		if strings.HasPrefix(path, ".machine/services") && strings.Contains(text, "Name:"+bundle.AgentService+" ") {
			return strings.Contains(text, "wmco-node-2.exe")
		}
	}
	t.Fatal("no service of the agent")
	return false
}

// runFor runs a program until it ends, done holds or the time is over. It returns 1 if the program was killed then.
func runFor(t *testing.T, cmd *exec.Cmd, limit time.Duration, log *strings.Builder, done func() bool) int {
	t.Helper()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	over := time.After(limit)
	for {
		select {
		case <-ended: // its service was reconfigured
			return 0
		case <-over:
			_ = cmd.Process.Kill()
			<-ended
			return 1
		case <-time.After(100 * time.Millisecond):
		}
		if limit == time.Minute && done() {
			_ = cmd.Process.Kill()
			<-ended
			return 0
		}
	}
}
