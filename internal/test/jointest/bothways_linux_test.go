package jointest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier/agent/executables"
	"wmco/bundle/published"
	"wmco/internal/test/payloadtest"
	"wmco/internal/test/registrytest"
	"wmco/internal/test/registrytest/distribution"
	"wmco/internal/test/testenv"
	"wmco/payload"
	"wmco/payload/store"
)

// TestBothWaysOfARelease: the same hosts get executables of the size of a release over SSH, and from a registry. What it costs is printed; what is checked
// is which way the bytes took.
func TestBothWaysOfARelease(t *testing.T) {
	n := testenv.Number(t, "WMCO_SCALE_COPY", 0)
	if n == 0 {
		t.Skip("executables of the size of a release are copied and fetched with WMCO_SCALE_COPY=HOSTS")
	}
	distribution.NeedRegistry(t)
	next := payloadtest.WriteFolder(t, filepath.Join("..", "..", ".."), payloadtest.ReleaseContents("next", 1))
	each := int64(0)
	for _, data := range payloadtest.ReleaseContents("next", 1) {
		each += int64(len(data))
	}
	t.Run("copied", func(t *testing.T) {
		w := newWorld(t)
		c := w.bringRelease(n, next, "executables: {from: SSH}\n")
		t.Log(c)
		if c.logins == 0 || c.written < each*int64(n) {
			t.Errorf("%d logins, and the operator has written %d bytes", c.logins, c.written)
		}
	})
	t.Run("fetched", func(t *testing.T) {
		w := newWorld(t)
		w.registry = func() executables.Registry { return registrytest.NewFetcher() }
		registry := distribution.Start(t, distribution.Options{})
		image := registrytest.PushImage(t, http.DefaultClient, "http://"+registry.Address+"/team/wmco", next)
		w.trustAny(registry.Address)
		before := registry.Written()
		c := w.bringRelease(n, next, fmt.Sprintf("executables: {from: Registry, image: %q}\n", registry.Address+"/team/wmco@"+image))
		t.Logf("%s; %.1f MB written by the registry", c, float64(registry.Written()-before)/1e6)
		if c.logins != 0 || c.written > each {
			t.Errorf("%d logins, and the operator has written %d bytes", c.logins, c.written)
		}
	})
}

// releaseCosts are what it cost that hosts got the executables of a release.
type releaseCosts struct {
	// took are the times from the start of the operator until it has noted each host, sorted.
	took []time.Duration
	// logins are those at all hosts, written what the operator has sent to hosts and to the API server, and has logged.
	logins  int
	written int64
	// status are lines of /proc/PID/status of the operator: the most memory that it had.
	peak string
	load string
}

func (c releaseCosts) String() string {
	var took []string
	for _, d := range c.took {
		took = append(took, fmt.Sprintf("%.0f", d.Seconds()))
	}
	return fmt.Sprintf("hosts ready after %s s; %d logins; %.1f MB written by the operator; at most %s of memory; load %s",
		strings.Join(took, ", "), c.logins, float64(c.written)/1e6, c.peak, c.load)
}

// bringRelease has hosts join, and starts an operator with other executables, in a process of its own. It returns when all hosts have them.
func (w *world) bringRelease(n int, folder, settings string) releaseCosts {
	w.t.Helper()
	var addresses, names []string
	for i := range n {
		addresses, names = append(addresses, fmt.Sprintf("192.0.2.%d", 70+i)), append(names, fmt.Sprintf("instance-%d", i))
		w.machine(names[i], addresses[i])
	}
	w.instances(addresses...)
	stop := w.operate()
	for _, name := range names {
		eventually(w.t, "node "+name, func() bool { return w.joined(name) })
	}
	stop()
	w.configure(settings)
	opened, err := store.Open(folder)
	must(w.t, err)
	wants := string(opened.Set().For(payload.TestedKubernetes).Digest())
	next := w.settings()
	next.Version, next.Payload = "next", folder
	before, begun := w.countLogins(), time.Now()
	o := w.process(next)
	var c releaseCosts
	for left := names; len(left) > 0; {
		eventually(w.t, fmt.Sprintf("one of %d hosts", len(left)), func() bool {
			rest := slices.DeleteFunc(slices.Clone(left), func(name string) bool { return w.node(name).Annotations[published.PayloadAnnotation] == wants })
			for range len(left) - len(rest) {
				c.took = append(c.took, time.Since(begun))
			}
			less := len(rest) < len(left)
			left = rest
			return less
		})
	}
	c.logins = w.countLogins() - before
	c.written, err = distribution.WrittenBy(o.Process.Pid)
	must(w.t, err)
	c.peak, c.load = restOfLine(w.t, fmt.Sprintf("/proc/%d/status", o.Process.Pid), "VmHWM:"), strings.Fields(restOfLine(w.t, "/proc/loadavg", ""))[0]
	o.stop()
	return c
}

// countLogins returns how often all hosts were logged in to.
func (w *world) countLogins() (n int) {
	w.t.Helper()
	for _, m := range w.machines {
		logins, err := m.ssh.logins()
		must(w.t, err)
		n += logins
	}
	return n
}

// restOfLine returns what follows in the line of a file that begins so.
func restOfLine(t *testing.T, file, beginning string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s has no line %s", file, beginning)
	return ""
}
