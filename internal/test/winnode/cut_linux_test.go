package winnode

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/seed"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
)

// cuts returns how often a host is interrupted: WMCO_KILLS, or 10.
func cuts() int {
	n, err := strconv.Atoi(os.Getenv("WMCO_KILLS"))
	if err != nil {
		return 10
	}
	return n
}

// cutMachines is the number of hosts that share the interruptions.
const cutMachines = 3

// between returns the bundles that are applied in random order.
func between(t *testing.T) []bundletest.Node {
	t.Helper()
	n := newNode(t)
	return []bundletest.Node{
		n,
		n.Changed(func(n *bundletest.Node) {
			n.Files[pathConfig], n.Files[`C:\k\added\other.conf`] = "another", "x"
			n.CAs = []string{n.CAs[1], authority(t, "third")}
			n.Programs[pathKubelet] = kubelet(t, "a newer one")
			delete(n.Files, pathMirror)
		}),
		n.Changed(func(n *bundletest.Node) {
			n.Services = n.Services[:1]
			n.SecretProxy, n.Proxy = "", map[string]string{"HTTPS_PROXY": "http://added.example.com:3128"}
			n.Programs[pathContainerd] = stand(t, stub.Behaviour{Version: "a newer one", Pipes: []string{pipeContainerd}})
			delete(n.Programs, pathExporter)
		}),
	}
}

// left is what a host has of a bundle.
type left struct {
	Files    map[string]string
	Settings string
}

func (m machine) left(t *testing.T) left {
	t.Helper()
	return left{without(m.contents(t), "ProgramData"), withoutShadows(m.settings(t))}
}

// withoutShadows leaves out variables that services get as empty because the host had them at boot: which ones depends on
// the interruptions.
func withoutShadows(settings string) string {
	const variables = "    Environment    REG_MULTI_SZ    "
	var out strings.Builder
	for line := range strings.Lines(settings) {
		if list, ok := strings.CutPrefix(line, variables); ok {
			names := strings.Split(strings.TrimSpace(list), `\0`)
			names = slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "=") })
			line = variables + strings.Join(names, `\0`) + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// TestConvergesAfterRandomReboots reboots hosts while they apply one bundle or another, and lets the last run finish.
func TestConvergesAfterRandomReboots(t *testing.T) {
	t.Parallel()
	nodes := between(t)
	want := make([]left, len(nodes))
	uncut := newMachine(t)
	for i, n := range nodes {
		uncut.applied(t, n)
		want[i] = uncut.left(t)
	}
	for i := range cutMachines {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := cutter{newMachine(t), nodes, seed.New(t), time.Second}
			killed := 0
			for range (cuts() + cutMachines - 1 - i) / cutMachines {
				killed += c.cut(t)
			}
			t.Logf("%d interrupted before their end", killed)
			c.converges(t, want)
		})
	}
}

// TestRepairsAnOldRegistry cuts the power before Wine has written the registry, which it does only at intervals (RegFlushKey
// does nothing in Wine): the files are of the new bundle, and its services, variables and roots are missing.
func TestRepairsAnOldRegistry(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t), newNode(t)
	m.WriteFile(t, foreign, []byte("not ours"))
	m.applied(t, n)
	m.Cut(t)
	m.keepRoots(t)
	if o := m.observe(t, n); o.InSync || o.Applied != o.Bundle || len(o.Missing) > 0 {
		t.Errorf("after the loss of power: %+v", o)
	}
	if r := m.wmco(t, nil, "repair"); r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	m.healthy(t, n)
}

// cutter interrupts one host.
type cutter struct {
	machine
	nodes  []bundletest.Node
	random *rand.Rand
	// took is the duration of the last run that was not interrupted.
	took time.Duration
}

// cut applies one of the bundles and reboots at a random time. It returns 1 if that interrupted the run.
func (c *cutter) cut(t *testing.T) (inTime int) {
	t.Helper()
	n := c.nodes[c.random.IntN(len(c.nodes))]
	stdin := string(n.Archive(t, c.observe(t, n).Missing))
	begin := time.Now()
	applying := c.Start(t, winetest.Command{Path: exe, Args: []string{"apply"}, Stdin: stdin})
	select {
	case <-applying.Ended():
		c.took = time.Since(begin)
	case <-time.After(time.Duration(c.random.Int64N(int64(c.took) * 5 / 4))):
		inTime = 1
	}
	c.Reboot(t)
	if r := applying.Wait(t); inTime == 0 && r.ExitCode != 0 {
		t.Errorf("a run that was not interrupted: %+v", r)
	}
	c.keepRoots(t)
	return inTime
}

// converges applies each of the bundles once more.
func (c *cutter) converges(t *testing.T, want []left) {
	t.Helper()
	for i, n := range c.nodes {
		c.applied(t, n)
		if diff := cmp.Diff(want[i], c.left(t)); diff != "" {
			t.Errorf("bundle %d (-want +got):\n%s", i, diff)
		}
		if r := c.wmco(t, n.Archive(t, nil), "verify"); r.ExitCode != 0 {
			t.Errorf("bundle %d: %+v", i, r)
		}
	}
	for path := range c.contents(t) {
		if strings.Contains(path, ".wmco-") {
			t.Errorf("leftover: %s", path)
		}
	}
}
