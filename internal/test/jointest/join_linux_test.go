package jointest_test

import (
	"context"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle/nodestate"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/status"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/sshtest/sshd"
)

// TestMachinesAndInstancesBecomeNodes: a Machine, an instance, and an instance that refuses the login, which delays no other.
func TestMachinesAndInstancesBecomeNodes(t *testing.T) {
	w := newWorld(t)
	stranger, _ := newKey(t)
	w.machine("machine-a", "192.0.2.11")
	w.machine("instance-b", "192.0.2.12")
	w.machineWith("instance-c", "192.0.2.13", sshd.Options{Key: stranger})
	w.machineObject("machine-a", "192.0.2.11")
	entries := w.instances("192.0.2.12", "192.0.2.13")
	// A person has pinned the key of the Machine's host; the other key is that of a host that was here before.
	known := hosts.EncodeKey(w.machines["machine-a"].ssh.showKey(t))
	pins := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: hosts.PinsConfigMap}, Data: map[string]string{"192.0.2.11": known, "192.0.2.199": known}}
	w.create(pins)
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
		c := w.condition(configure.HostsJoined)
		return c.Status == metav1.ConditionFalse && c.Reason == configure.ReasonLoginRefused && strings.HasPrefix(c.Message, "192.0.2.13: ") && strings.Contains(c.Message, "fix: ")
	})
	eventually(t, "the host in the status, with what to do", func() bool {
		h := w.host("192.0.2.13")
		return h.State == nodestate.Degraded && h.Reason == configure.ReasonLoginRefused && h.Address == "192.0.2.13" && h.Fix != ""
	})
	eventually(t, "a sum that other programs read", func() bool {
		bad, ready := w.condition(status.Degraded), w.condition(status.Ready)
		return bad.Status == metav1.ConditionTrue && strings.HasPrefix(bad.Message, "192.0.2.13: ") && ready.Status == metav1.ConditionFalse
	})
	if r, _, err := w.login().Records.GetRecord(t.Context(), w.machineID("machine-a")); err != nil || r.HostKey != known || r.Origin != record.OriginJoined || r.Account != remote.DefaultUser {
		t.Errorf("the record of the Machine's host: %+v, %v", r, err)
	}
	eventually(t, "the end of keys that are pinned by address", func() bool {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(pins), pins))
		return len(pins.Data) == 0
	})
	if w.hasNode("instance-c") {
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
	eventually(t, "the condition without it", func() bool { return w.condition(configure.HostsJoined).Status == metav1.ConditionTrue })
	eventually(t, "the status without it", func() bool { return w.host("192.0.2.13").Name == "" })
}
