package jointest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// TestALiarDoesNotBecomeAnotherHostsNode: a host with an entry of its own claims the name and the address of another one, when
// nothing is recorded and the other one's name cannot be resolved. After that, the other one lacks no certificate because of it.
func TestALiarDoesNotBecomeAnotherHostsNode(t *testing.T) {
	w := newWorld(t)
	w.names["win.example.com"] = []string{"192.0.2.221"}
	victim := w.machine("instance-v", "192.0.2.221")
	must(t, w.at.put("win.example.com", victim.ssh.address()))
	w.instances("win.example.com", "192.0.2.250")
	stop := w.operate()
	w.allJoin([]string{"instance-v"})
	stop()
	// As after an upgrade from a version without records.
	must(t, w.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{hosts.RecordsLabel}))
	delete(w.names, "win.example.com")
	liar := w.machine("liar", "192.0.2.222")
	must(t, liar.Edit(t.Context(), func(s *simulation.State) {
		s.HostName, s.Facts.Addresses = "instance-v", append(s.Facts.Addresses, "192.0.2.221")
	}))
	w.addEntry("192.0.2.222")
	stop = w.operate()
	w.awaitEvent("InstanceSetupFailure", "windows-instances", "192.0.2.222", "NodeNameTaken", "instance-v", "does not report the address", "do not delete the Node")
	r, _, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("192.0.2.222"))
	if err != nil || r.Node != "" {
		t.Errorf("the record of the liar: %+v, %v", r, err)
	}
	stop()
	w.names["win.example.com"] = []string{"192.0.2.221"}
	w.operate()
	eventually(t, "the record of the host", func() bool {
		r, _, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("win.example.com"))
		return err == nil && r.Node == "instance-v" && r.Origin == record.OriginAdopted && r.Resolved == "192.0.2.221"
	})
	w.awaitEvent("InstanceSetupFailure", "windows-instances", "192.0.2.222", "NodeNameTaken")
	w.serving("instance-v", "192.0.2.221")
	if !w.joined("instance-v") || victim.Status("kubelet") != plan.ServiceRunning {
		t.Error("the node is not what it was")
	}
}

// TestARenamedEntryKeepsItsNode: an administrator writes the address in the place of the name, and the host is not reached by it at once.
func TestARenamedEntryKeepsItsNode(t *testing.T) {
	w := newWorld(t)
	w.names["win.example.com"] = []string{"192.0.2.231"}
	m := w.machine("instance-r", "192.0.2.231")
	must(t, w.at.put("win.example.com", m.ssh.address()))
	w.machine("instance-s", "192.0.2.232")
	w.instances("win.example.com", "192.0.2.232")
	w.operate()
	w.allJoin([]string{"instance-r", "instance-s"})
	eventually(t, "the record with its address", func() bool {
		r, _, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("win.example.com"))
		return err == nil && r.Resolved == "192.0.2.231"
	})
	must(t, w.at.put("192.0.2.231", nowhere))
	w.changeEntries(func(data map[string]string) {
		data["192.0.2.231"] = data["win.example.com"]
		delete(data, "win.example.com")
	})
	w.awaitEvent("InstanceSetupFailure", "windows-instances", "192.0.2.231", "Unreachable")
	// Another removal shows that the operator looks at entries that are gone.
	w.removeEntry("192.0.2.232")
	eventually(t, "the removal of another instance", func() bool { return !w.hasNode("instance-s") })
	if n := w.findNode("instance-r"); n == nil || n.Spec.Unschedulable || m.Status("kubelet") != plan.ServiceRunning {
		t.Fatal("the node was taken away because its entry has another form")
	}
	must(t, w.at.put("192.0.2.231", m.ssh.address()))
	eventually(t, "the record of the new entry", func() bool {
		r, _, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("192.0.2.231"))
		return err == nil && r.Node == "instance-r" && w.joined("instance-r")
	})
}

// TestAnInstanceGetsCertificatesOfOneName: after its first certificate it waits with a key for another name.
func TestAnInstanceGetsCertificatesOfOneName(t *testing.T) {
	w := newWorld(t)
	m := w.machine("instance-n", "192.0.2.241")
	w.instances("192.0.2.241")
	stop := w.operate()
	w.allJoin([]string{"instance-n"})
	stop()
	// Its Node is gone, and it takes a name that is free.
	must(t, w.Delete(t.Context(), w.node("instance-n")))
	must(t, m.Edit(t.Context(), func(s *simulation.State) { s.HostName = "worker-9" }))
	w.operate()
	csr := impostor{node: "worker-9", signer: clientSigner, usages: clientUsages}.request(t, "second-name")
	w.post(w.bootstrapper(), csr)
	eventually(t, "the verdict", func() bool {
		return strings.Contains(w.log.String(), `in a certificate signing request" logger=csr csr=second-name `)
	})
	w.approvedNever("second-name")
}

// TestALiarGetsServingCertificatesForItselfAlone: a host with an entry claims the address of another one whose entry is a name, that of the API
// server's service, one that is not known, and the API server's external name. Its second adapter is its own.
func TestALiarGetsServingCertificatesForItselfAlone(t *testing.T) {
	w := newWorld(t)
	w.names["win-v.example.com"] = []string{"192.0.2.223"}
	victim := w.machine("instance-v", "192.0.2.223")
	must(t, w.at.put("win-v.example.com", victim.ssh.address()))
	liar := w.machine("api", "192.0.2.224")
	must(t, w.at.put("192.0.2.225", liar.ssh.address()))
	must(t, liar.Edit(t.Context(), func(s *simulation.State) {
		s.Facts.DNSSuffix = "demo.example.com"
		s.Facts.Addresses = append(s.Facts.Addresses, "192.0.2.225", "192.0.2.223", "172.30.0.1", "203.0.113.10")
	}))
	w.instances("win-v.example.com", "192.0.2.224")
	w.operate()
	w.allJoin([]string{"instance-v", "api"})
	as := w.user("system:node:api", "system:nodes")
	for name, i := range map[string]impostor{
		"of-another-host": {ip: "192.0.2.223", says: `does not have the address "192.0.2.223"`},
		"of-the-service":  {ip: "172.30.0.1", says: `does not have the address "172.30.0.1"`},
		"unknown":         {ip: "203.0.113.10", says: "was not reached at its address 203.0.113.10"},
		"of-the-api":      {dns: []string{"api.demo.example.com"}, says: `does not have the name "api.demo.example.com"`},
	} {
		i.node, i.signer, i.usages = "api", servingSigner, servingUsages
		w.post(as, i.request(t, name))
		w.awaitEvent(notApproved, "windows-instances", name+": ", i.says, "fix: ")
		w.approvedNever(name)
	}
	w.serving("api", "192.0.2.225")
	w.serving("instance-v", "192.0.2.223")
}
