package jointest_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/controller/configure"
	"wmco/internal/test/sshtest/simulated"
	"wmco/internal/test/sshtest/sshd"
)

// mute starts a host that stops at some point, without an entry.
func (w *world) mute(name, address string, silent simulated.Silent) {
	w.t.Helper()
	w.machineWith(name, address, sshd.Options{Key: w.signer, Settings: simulated.Settings{Silent: silent}})
}

// listening returns an address that accepts connections, and nothing else.
func listening(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// reached returns how many of the hosts operators have tried to reach.
func (w *world) reached(addresses []string) int {
	return count(addresses, func(address string) bool { return w.at.dialed(w.t, address) > 0 })
}

// TestSilentHostsHoldUpNobody: hosts whose SSH servers live and stop to answer, each from another point on, are there before hosts that
// are as they should be. Those join nevertheless, and the status shows that not all have.
func TestSilentHostsHoldUpNobody(t *testing.T) {
	for _, tt := range []struct {
		name string
		// always, upload, apply and tcp are how many hosts stop there.
		always, upload, apply, tcp int
	}{
		{"16 that answer no command", 16, 0, 0, 0},
		{"80 that stop at every point", 50, 16, 4, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.mute("instance-always", "192.0.2.10", simulated.SilentAlways)
			w.mute("instance-upload", "192.0.2.11", simulated.SilentUpload)
			places := map[string]string{}
			add := func(n int, where string) {
				for range n {
					places[fmt.Sprintf("192.0.2.%d", 100+len(places))] = where
				}
			}
			add(tt.always, w.machines["instance-always"].ssh.address())
			add(tt.upload, w.machines["instance-upload"].ssh.address())
			add(tt.tcp, listening(t))
			var silent []string
			for address, where := range places {
				must(t, w.at.put(address, where))
				silent = append(silent, address)
			}
			for i := range tt.apply {
				address := fmt.Sprintf("192.0.2.%d", 100+len(silent))
				w.mute(fmt.Sprintf("instance-apply-%d", i), address, simulated.SilentApply)
				silent = append(silent, address)
			}
			slices.Sort(silent)
			w.instances(silent...)
			w.operate()
			eventually(t, "silent hosts that are reached", func() bool { return w.reached(silent) >= min(len(silent), 16) })
			eventually(t, "that condition", func() bool {
				c := w.condition(configure.HostsJoined)
				if c.Status == metav1.ConditionTrue {
					t.Fatalf("%s is true, and no host has joined", configure.HostsJoined)
				}
				return c.Status == metav1.ConditionUnknown && strings.HasPrefix(c.Message, fmt.Sprintf("%d of %d hosts on the way", len(silent), len(silent))) || c.Status == metav1.ConditionFalse
			})
			w.machine("instance-good", "192.0.2.21")
			w.machine("machine-good", "192.0.2.22")
			w.machineObject("machine-good", "192.0.2.22")
			w.addEntry("192.0.2.21")
			w.allJoin([]string{"instance-good", "machine-good"})
			if c := w.condition(configure.HostsJoined); c.Status == metav1.ConditionTrue {
				t.Errorf("%s is true, and %d hosts have not joined", configure.HostsJoined, len(silent))
			}
			w.instances("192.0.2.21")
			eventually(t, "the condition without them", func() bool { return w.condition(configure.HostsJoined).Status == metav1.ConditionTrue })
		})
	}
}
