package join_test

import (
	"context"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/controller/join"
	"wmco/internal/sshtest/sshd"
)

// TestMachinesAndInstancesBecomeNodes: a Machine, an instance, and an instance that refuses the login, which holds up nobody.
func TestMachinesAndInstancesBecomeNodes(t *testing.T) {
	w := newWorld(t)
	stranger, _ := newKey(t)
	w.machine("machine-a", "192.0.2.11")
	w.machine("instance-b", "192.0.2.12")
	w.machineWith("instance-c", "192.0.2.13", sshd.Options{Key: stranger})
	w.machineObject("machine-a", "192.0.2.11")
	entries := w.instances("192.0.2.12", "192.0.2.13")
	w.operate()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var list certificatesv1.CertificateSigningRequestList
		must(t, w.List(context.Background(), &list))
		for _, csr := range list.Items {
			t.Logf("%s by %s: %v", csr.Name, csr.Spec.Username, csr.Status.Conditions)
		}
	})
	for _, name := range []string{"machine-a", "instance-b"} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
	}
	eventually(t, "an event about the host that refuses the login", func() bool {
		notes := w.events("InstanceSetupFailure", "windows-instances")
		return len(notes) > 0 && strings.Contains(notes[0], "LoginRefused: 192.0.2.13") && strings.Contains(notes[0], "fix: ")
	})
	eventually(t, "a condition about it", func() bool {
		c := w.condition(join.HostsJoined)
		return c.Status == metav1.ConditionFalse && c.Reason == join.ReasonLoginRefused && strings.HasPrefix(c.Message, "192.0.2.13: ") && strings.Contains(c.Message, "fix: ")
	})
	if w.node("instance-c") != nil {
		t.Error("a host that refuses the login is a node")
	}
	b := w.node("instance-b")
	for key, want := range map[string]string{"windowsmachineconfig.openshift.io/byoh": "true", "node-role.kubernetes.io/worker": ""} {
		if got, ok := b.Labels[key]; !ok || got != want {
			t.Errorf("label %s is %q", key, got)
		}
	}
	delete(entries.Data, "192.0.2.13")
	must(t, w.Update(t.Context(), entries))
	eventually(t, "the condition without it", func() bool { return w.condition(join.HostsJoined).Status == metav1.ConditionTrue })
}
