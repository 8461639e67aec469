package fleet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/status"
)

// settingsOf are those of a cluster, as an object.
func settingsOf(text string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": "windows-machine-config"}, "data": map[string]any{"config.yaml": text}}
}

// TestWhatKeepsAWantedAdoptionIsSaid: to ask for it again is no advice. The operator's report about the host at the address is.
func TestWhatKeepsAWantedAdoptionIsSaid(t *testing.T) {
	refuses := status.Host{Name: "10.0.0.7", Address: "10.0.0.7", State: nodestate.Degraded, Reason: "LoginRefused", Message: "the host refuses the key", Fix: "add the key"}
	waits := status.Host{Name: "10.0.0.7", Address: "10.0.0.7", Node: "win-a", State: nodestate.Waiting, Reason: ReasonWaitingForAdoption, Message: "it waits", Fix: AdoptFix("win-a")}
	recorded, elsewhere := refuses, refuses
	recorded.Address, recorded.Node = "host.example.com", "win-a"
	elsewhere.Address = "10.0.0.8"
	const keeps = "configured by the existing operator (version 11.0.0); until you adopt the node, it gets no changes, not even a rotated CA or pull secret"
	const asked = "adoption requested, not started yet; until it starts, the node gets no changes, not even a rotated CA or pull secret"
	for _, c := range []struct {
		name, settings, annotation string
		host                       status.Host
		reason, message, fix       string
	}{
		{"not asked for", "", "", refuses, ReasonWaitingForAdoption, keeps, AdoptFix("win-a")},
		{"asked for with another value", "", "false", refuses, ReasonWaitingForAdoption, keeps, AdoptFix("win-a")},
		{"asked for, and the host refuses the login", "", "true", refuses, "LoginRefused", "the host refuses the key", "add the key"},
		{"asked for, of a host that is known to be the node", "", "true", recorded, "LoginRefused", "the host refuses the key", "add the key"},
		{"asked for by the settings", "adoption: Rollout", "", refuses, "LoginRefused", "the host refuses the key", "add the key"},
		{"asked for, and another host has a problem", "", "true", elsewhere, ReasonWaitingForAdoption, asked, ""},
		{"asked for just now", "", "true", waits, ReasonWaitingForAdoption, asked, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{published.VersionAnnotation: "11.0.0"}, Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}}
			if c.annotation != "" {
				n.Annotations[published.AdoptAnnotation] = c.annotation
			}
			fromOperator := status.Status{Hosts: []status.Host{c.host}}
			f, findings, err := Read(t.Context(), readerOf(t, n, fromOperator, settingsOf(c.settings)), "n", now())
			if err != nil || len(findings) > 0 || len(f.Nodes) != 1 {
				t.Fatalf("%v, %+v, %+v", err, findings, f)
			}
			got := f.Nodes[0]
			if diff := cmp.Diff([]string{c.reason, c.message, c.fix}, []string{got.Reason, got.Message, got.Fix}); diff != "" || got.State != nodestate.Waiting {
				t.Errorf("%s (-want +got):\n%s", got.State, diff)
			}
			if diff := cmp.Diff([]status.Host{c.host}, f.Hosts); diff != "" {
				t.Errorf("the row of the host (-want +got):\n%s", diff)
			}
		})
	}
}

// readerOf reads these objects of a cluster.
func readerOf(t *testing.T, node corev1.Node, fromOperator status.Status, settings map[string]any) objects.Reader {
	t.Helper()
	dir := t.TempDir()
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	for name, o := range map[string]any{
		"node": node, "settings": settings,
		"status": map[string]any{"apiVersion": status.Group + "/" + status.Version, "kind": status.Kind, "metadata": map[string]any{"namespace": "n", "name": status.Name}, "status": fromOperator},
	} {
		text, err := json.Marshal(o)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return objects.NewPathsReader([]string{dir}, nil)
}
