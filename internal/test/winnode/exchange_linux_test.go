package winnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/testenv"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
	"wmco/payload"
)

// guardWait is how long the guard of the second agent waits for the one after it.
const guardWait = "15s"

// offer is an operator with another node agent: the program is on the host, and the bundle with it is published.
func (p *puller) offer(t *testing.T, agent []byte) {
	t.Helper()
	p.stop()
	p.ships(t, agent)
	if r := p.wmco(t, p.rendered(t), "stage"); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	// The operator marks what it has staged itself, over SSH.
	mark := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, published.PayloadAnnotation, p.set.Digest())
	if err := p.Patch(t.Context(), p.node(t), client.RawPatch(types.MergePatchType, mark)); err != nil {
		t.Fatal(err)
	}
	before := p.wanted(t)
	p.operator(t)
	eventually(t, "the bundle with the other agent is published", func() bool { return p.wanted(t) != before })
}

// handsOver waits until the agent has given its service the program, and ended. Then it starts the service, which Windows does by its
// recovery and Wine does not.
func (p *puller) handsOver(t *testing.T, agent []byte) {
	t.Helper()
	p.until(t, "the agent hands over", func() bool {
		return strings.Contains(p.sc(t, "query"), "STOPPED") && p.runs(t, agent)
	})
	if !strings.Contains(p.guard(t), "RUNNING") {
		t.Errorf("the guard: %s", p.guard(t))
	}
	p.sc(t, "start")
}

// until waits, while the kubelet renews its Lease, by which changes are confirmed.
func (p *puller) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := testenv.Eventually(t.Context(), what, func() bool { p.renew(t); return done() }); err != nil {
		r, c := p.report(t)
		t.Fatalf("%v: the agent reports %+v, %+v", err, r, c)
	}
}

// runs reports whether this program is that of the agent's service.
func (p *puller) runs(t *testing.T, agent []byte) bool {
	t.Helper()
	r := p.Run(t, winetest.Command{Path: "reg", Args: []string{"query", keyServices + `\` + bundle.AgentService, "/v", "ImagePath"}})
	return strings.Contains(r.Stdout, payload.AgentPath(bundle.Of(agent)))
}

// guard returns the state of the guard in the service control manager.
func (p *puller) guard(t *testing.T) string {
	t.Helper()
	return p.Run(t, winetest.Command{Path: "sc", Args: []string{"query", bundle.GuardService}}).Stdout
}

// hasOnly checks that nothing but this agent is on the host.
func (p *puller) hasOnly(t *testing.T, agent []byte) {
	t.Helper()
	path := payload.AgentPath(bundle.Of(agent))
	if !p.runs(t, agent) {
		t.Errorf("the service does not run %s", path)
	}
	found, err := filepath.Glob(p.Path(bundle.Dir(path)) + "/*.exe")
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != bundle.Base(path) {
		t.Errorf("agents on the host: %q, %v", found, err)
	}
	if _, err := os.Stat(p.Path(records.FileGuard)); !os.IsNotExist(err) {
		t.Errorf("the program of the guard: %v", err)
	}
	if text := p.guard(t); strings.Contains(text, "STATE") {
		t.Errorf("the guard: %s", text)
	}
}

// secondAgent is another build of the node agent. As a guard it does not wait for minutes.
func secondAgent(t *testing.T) []byte {
	t.Helper()
	return winetest.Program(t, module, "./cmd/wmco-node", "main.wine=yes", "main.version=second", "main.guardWait="+guardWait)
}

func (p *puller) exchanges(t *testing.T) {
	p.second = secondAgent(t)
	p.offer(t, p.second)
	p.handsOver(t, p.second)
	p.until(t, "the second agent confirms itself", func() bool {
		r, _ := p.report(t)
		return r.State == published.StateApplied && r.Applied == p.wanted(t)
	})
	if r := p.follow(t); r.Program != "second" {
		t.Errorf("%+v", r)
	}
	p.hasOnly(t, p.second)
}

func (p *puller) restores(t *testing.T) { p.fails(t, []byte("no program")) }

// endsHanging: it is a service that runs and does nothing.
func (p *puller) endsHanging(t *testing.T) {
	p.fails(t, []byte(stand(t, stub.Behaviour{Version: "an agent that hangs"})))
}

// fails offers an agent that does not confirm. Afterwards everything is as before, and the agent works.
func (p *puller) fails(t *testing.T, agent []byte) {
	t.Helper()
	had, _ := p.report(t)
	p.offer(t, agent)
	p.handsOver(t, agent)
	p.until(t, "the agent that was restored reports it", func() bool {
		r, _ := p.report(t)
		return r.State == published.StateRolledBack
	})
	if r, _ := p.report(t); r.Desired != p.wanted(t) || r.Applied != had.Applied || r.Program != "second" || !strings.Contains(r.Message, "within "+guardWait) {
		t.Errorf("%+v", r)
	}
	p.agentIs(t, "RUNNING")
	eventually(t, "an event", func() bool {
		for text := range p.events(t) {
			if strings.HasPrefix(text, "BundleRolledBack") && strings.Contains(text, "did not confirm") {
				return true
			}
		}
		return false
	})
	p.hasOnly(t, p.second)
	p.offer(t, p.second)
	p.mirror(t)
	p.follow(t)
}
