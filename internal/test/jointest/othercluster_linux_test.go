package jointest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/controller/configure"
	"wmco/controller/node"
	"wmco/internal/hostsim/simulation"
)

const (
	kubeconfigFile          = `C:\k\kubeconfig`
	bootstrapKubeconfigFile = `C:\k\bootstrap-kubeconfig`
)

// otherCluster is a kubeconfig of another cluster, whose CA cannot be read.
const otherCluster = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"other","user":"u"}}],` +
	`"clusters":[{"name":"other","cluster":{"server":"https://api-int.other.example.com:6443","certificate-authority":"C:\\k\\bootstrap-ca.crt"}}],"users":[{"name":"u","user":{"token":"secret-of-the-other"}}]}`

// belongsElsewhere makes a host that has a kubelet a node of another cluster.
func (m *joinedMachine) belongsElsewhere(t *testing.T) {
	t.Helper()
	for _, file := range []string{kubeconfigFile, bootstrapKubeconfigFile} {
		must(t, m.WriteFile(t.Context(), file, bundle.AccessAdmins, []byte(otherCluster)))
	}
	must(t, m.WriteFile(t.Context(), `C:\k\bootstrap-ca.crt`, bundle.AccessUsers, []byte("of another cluster")))
}

// withoutUploads returns the files and services of a host but what the upload of the node agent leaves, and what programs that run write.
func (m *joinedMachine) withoutUploads(t *testing.T) map[string]string {
	t.Helper()
	all, err := m.Snapshot(t.Context())
	must(t, err)
	kept := map[string]string{}
	for path, file := range all.Files {
		p := strings.ToLower(path)
		if strings.HasPrefix(p, `c:\k\`) && !strings.HasSuffix(p, bundle.LedgerCopy) && !strings.HasPrefix(p, `c:\k\cni\config\`) {
			kept[p] = string(file.Kind) + " " + m.Text(path)
		}
	}
	must(t, m.Edit(t.Context(), func(s *simulation.State) {
		for _, svc := range s.Services {
			kept["service "+svc.Name] = svc.CommandLine
		}
	}))
	return kept
}

// TestAHostOfAnotherClusterIsLeftAlone: one that is to be adopted, one that is to join, and one that another cluster has taken since, whose entry
// is removed. Its message names that cluster, and has nothing secret of it.
func TestAHostOfAnotherClusterIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	addresses := map[string]string{"instance-m": "192.0.2.94", "instance-n": "192.0.2.95", "instance-o": "192.0.2.96"}
	w.existingNodes(addresses)
	before := map[string]map[string]string{}
	for _, name := range []string{"instance-m", "instance-n"} {
		w.machines[name].belongsElsewhere(t)
	}
	// The second one has no Node here: it is written to windows-instances by mistake.
	must(t, w.Delete(t.Context(), w.node("instance-n")))
	for name, m := range w.machines {
		before[name] = m.withoutUploads(t)
	}
	w.operate()
	for name := range addresses {
		if name != "instance-n" {
			w.adopt(name)
		}
	}
	for _, name := range []string{"instance-m", "instance-n"} {
		w.awaitEvent("InstanceSetupFailure", configure.InstancesName, configure.ReasonOtherCluster, addresses[name], "api-int.other.example.com", "nothing was changed", "sc.exe delete kubelet")
		if w.recordOf(addresses[name]).Node != "" {
			t.Errorf("%s is recorded as a node", name)
		}
		if now := w.machines[name].withoutUploads(t); !maps.Equal(now, before[name]) {
			t.Errorf("%s was changed: %v", name, differing(before[name], now))
		}
	}

	// One that was adopted, and is another cluster's since.
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-o", addresses["instance-o"]) })
	o := w.machines["instance-o"]
	o.belongsElsewhere(t)
	services := o.Starts()
	w.removeEntry(addresses["instance-o"])
	w.awaitEvent("InstanceRemovalWaiting", "instance-o", "api-int.other.example.com", "nothing was changed", node.RemoveAnnotation+"=force")
	all, err := o.Snapshot(t.Context())
	must(t, err)
	if len(all.Services) == 0 || o.Text(kubeconfigFile) != otherCluster || o.Starts()["kubelet"] != services["kubelet"] {
		t.Errorf("the host of another cluster was cleaned up; it has %v", all.Services)
	}
	w.annotate("instance-o", node.RemoveAnnotation, "force")
	eventually(t, "the end of the Node", func() bool { return !w.hasNode("instance-o") })
	if o.Text(kubeconfigFile) != otherCluster {
		t.Error("the host was cleaned up with its Node")
	}

	// The fix: the service is deleted, as that cluster no longer exists.
	n := w.machines["instance-n"]
	for _, service := range []string{"kube-proxy", "hybrid-overlay-node", "kubelet"} { // those that depend on it first, as net stop /y does
		must(t, n.StopService(t.Context(), service))
	}
	must(t, n.Edit(t.Context(), func(s *simulation.State) {
		maps.DeleteFunc(s.Services, func(_ string, svc simulation.Service) bool { return svc.Name == "kubelet" })
	}))
	eventually(t, "the host to join", func() bool { return w.hasNode("instance-n") && w.joined("instance-n") })
	if text := w.log.String(); strings.Contains(text, "secret-of-the-other") {
		t.Error("the log has the token of the other cluster")
	}
}

// differing names what differs.
func differing(before, now map[string]string) []string {
	var list []string
	for key := range now {
		if now[key] != before[key] {
			list = append(list, key)
		}
	}
	for key := range before {
		if _, ok := now[key]; !ok {
			list = append(list, "no "+key)
		}
	}
	slices.Sort(list)
	return list
}
