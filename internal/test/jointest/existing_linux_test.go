package jointest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/internal/hostsim/simulation"
)

// What the existing operator leaves on a node. Its agent cannot be had here; its files, services, variables and annotations are those of its source
// (github.com/openshift/windows-machine-config-operator, commit 0be4b9ccb).
const (
	existingVersion = "11.0.0-4f0a7c1" // pkg/metadata/metadata.go:18, VersionAnnotation
	existingAgent   = `C:\k\windows-instance-config-daemon.exe`
)

// existingFiles are files that differ from ours, or are not ours.
func existingFiles() map[string]string {
	return map[string]string{
		existingAgent:                             "the existing agent",    // pkg/windows/windows.go:81, wicdPath
		`C:\k\wicd-kubeconfig`:                    "of the existing agent", // pkg/windows/windows.go:152, WICDKubeconfigPath
		`C:\k\wicd-certs\wicd-client-current.pem`: "a client certificate",  // pkg/windows/windows.go:156, WICDCurrentCertPath
		`C:\Temp\hns.psm1`:                        "a script",              // pkg/windows/windows.go:36, HNSPSModule
		`C:\Temp\network-conf.ps1`:                "a script",              // pkg/windows/windows.go:90, NetworkConfScriptPath
	}
}

// existingCommands are the commands of services, by their names. That of the kubelet is almost ours: what the simulated one reads is the same.
func existingCommands() map[string]string {
	return map[string]string{
		// pkg/windows/windows.go:633, ConfigureWICD
		bundle.AgentService: existingAgent + ` controller --windows-service --log-dir C:\var\log\wicd --namespace openshift-windows-machine-config-operator --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 24h --ca-bundle C:\k\ca-bundle.crt`,
		// pkg/services/services.go:216, csiProxyConfiguration
		"csi-proxy": `C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2`,
		// pkg/services/services.go:33, GenerateManifest
		"windows_exporter": `C:\k\windows_exporter.exe --collectors.enabled cpu,logical_disk,net,os,service,system,container,memory,cpu_info --web.config.file C:\k\tls\windows-exporter-webconfig.yaml --log.level info --log.file C:\var\log\windows_exporter\windows_exporter.log`,
	}
}

// older is an executable of the existing operator whose exchange needs a drain: its containerd is 1.7.
const older = `C:\k\containerd\containerd.exe`

// becomeExisting turns joined nodes, whose operator has ended, into those of the existing operator, which has ended too: with its agent and its files
// on the host, with its annotations on the Node, and without anything that only this operator knows. Those whose names are in drained have an older
// containerd.
func (w *world) becomeExisting(names []string, drained ...string) {
	w.t.Helper()
	for _, name := range names {
		m := w.machines[name]
		must(w.t, m.StopService(w.t.Context(), bundle.AgentService))
		files := existingFiles()
		if slices.Contains(drained, name) {
			files[older] = "containerd 1.7"
		}
		for path, text := range files {
			must(w.t, m.WriteFile(w.t.Context(), path, bundle.AccessUsers, []byte(text)))
		}
		all, err := m.Snapshot(w.t.Context())
		must(w.t, err)
		for path := range all.Files {
			p := strings.ToLower(path)
			own := strings.HasPrefix(p, strings.ToLower(plan.StateFolder)+`\`) || strings.HasPrefix(p, `c:\windows\wmco\`) || strings.HasPrefix(p, `c:\k\agent\`) || strings.HasSuffix(p, bundle.LedgerCopy)
			if own && all.Files[path].Kind == plan.FileRegular {
				must(w.t, m.RemoveFile(path))
			}
		}
		commands := existingCommands()
		must(w.t, m.Edit(w.t.Context(), func(s *simulation.State) {
			for key, svc := range s.Services {
				if command, ok := commands[svc.Name]; ok {
					svc.CommandLine = command
				}
				svc.Environment = nil // pkg/daemon/envvar/envvar.go:32: it sets the variables of the machine
				s.Services[key] = svc
			}
			s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "NO_PROXY", Value: ".existing.example.com", Present: true})
		}))
		must(w.t, m.StartService(w.t.Context(), bundle.AgentService))
		w.annotateExisting(name)
	}
	must(w.t, w.DeleteAllOf(w.t.Context(), &corev1.ConfigMap{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{hosts.RecordsLabel}))
	must(w.t, w.DeleteAllOf(w.t.Context(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}))
}

// annotateExisting leaves the annotations of the existing operator on a Node.
func (w *world) annotateExisting(name string) {
	w.t.Helper()
	kept := []string{
		configure.UsernameAnnotation, // controllers/configmap_controller.go, UsernameAnnotation: BYOH only
		keys.HashAnnotation,          // pkg/nodeconfig/nodeconfig.go:199, PubKeyHashAnnotation
		hosts.PinAnnotation,          // pkg/nodeconfig/nodeconfig.go:907, SSHHostKeyAnnotation
		hosts.PinTypeAnnotation,      // pkg/nodeconfig/nodeconfig.go:908, SSHHostKeyTypeAnnotation
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(w.node(name).Annotations)) {
		if strings.HasPrefix(key, published.Domain) && !slices.Contains(kept, key) {
			changes = append(changes, fmt.Sprintf("%q:null", key))
		}
	}
	for _, key := range []string{published.VersionAnnotation, published.DesiredVersionAnnotation} { // pkg/metadata/metadata.go:18, 20
		changes = slices.DeleteFunc(changes, func(c string) bool { return strings.HasPrefix(c, fmt.Sprintf("%q", key)) })
		changes = append(changes, fmt.Sprintf("%q:%q", key, existingVersion))
	}
	patch := []byte(`{"metadata":{"annotations":{` + strings.Join(changes, ",") + `}}}`)
	must(w.t, w.Patch(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, patch)))
}

// existingNodes are hosts of Machines and instances, by their names, that the existing operator has joined.
func (w *world) existingNodes(nodes map[string]string, drained ...string) {
	w.t.Helper()
	names := slices.Sorted(maps.Keys(nodes))
	var entries []string
	for _, name := range names {
		w.machine(name, nodes[name])
		if strings.HasPrefix(name, "machine-") {
			w.machineObject(name, nodes[name])
		} else {
			entries = append(entries, nodes[name])
		}
	}
	w.instances(entries...)
	stop := w.operate()
	w.allJoin(names)
	for _, name := range names {
		eventually(w.t, "the copy of the ledger of "+name, func() bool { return w.machines[name].Text(ledgerCopy) != "" })
	}
	stop()
	w.becomeExisting(names, drained...)
}

// hasExistingAgent reports whether the service of the existing agent runs as its operator has left it.
func (m *joinedMachine) hasExistingAgent() bool {
	all, err := m.Services(context.Background(), []string{bundle.AgentService})
	return err == nil && len(all) == 1 && all[0].CommandLine == existingCommands()[bundle.AgentService] && all[0].Status == plan.ServiceRunning
}
