package simnode_test

import (
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/test/simnode"
)

// TestAMachineJoinsOverSSH is the whole way: bundles rendered from the cluster's objects, applied by the real node program over a real
// SSH server, certificates requested from the real API server and signed by the real controller manager.
func TestAMachineJoinsOverSSH(t *testing.T) {
	c := startCluster(t)
	m := newOverSSH(t, "win-ssh")
	t.Log(m.apply(t))
	if got := m.Status("kubelet"); got != plan.ServiceRunning {
		t.Fatalf("the kubelet is %s", got)
	}
	eventually(t, "the Node", func() bool {
		_, ok := getNode(t, c, "win-ssh")
		return ok
	})
	if n, _ := getNode(t, c, "win-ssh"); ready(n) {
		t.Error("the Node is Ready without a pod network")
	}
	t.Log(m.apply(t))
	eventually(t, "the networks", func() bool {
		facts, err := m.Facts(t.Context())
		must(t, err)
		return facts.Network("OVNKubernetesHybridOverlayNetwork").AddressPrefix != ""
	})
	t.Log(m.apply(t))
	eventually(t, "a Ready Node", func() bool {
		n, _ := getNode(t, c, "win-ssh")
		return ready(n)
	})
	if got := m.Status(bundle.AgentService); got != plan.ServiceRunning {
		t.Errorf("the agent is %s", got)
	}
	logins, err := simnode.Logins(m.server)
	must(t, err)
	starts := m.Starts()
	must(t, m.Reboot())
	eventually(t, "the Node after a boot", func() bool {
		n, _ := getNode(t, c, "win-ssh")
		return ready(n) && m.Starts()["kubelet"] == starts["kubelet"]+1
	})
	if again, err := simnode.Logins(m.server); err != nil || logins == 0 || again != logins {
		t.Errorf("%d logins, %d after the boot, %v", logins, again, err)
	}
	t.Log(m.apply(t))
	if again, err := simnode.Logins(m.server); err != nil || again <= logins {
		t.Errorf("%d logins, %d after another run, %v", logins, again, err)
	}
}
