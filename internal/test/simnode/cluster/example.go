package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/overlay"
)

// Example is a joined node and the facts of its host, of which there may be many.
type Example struct {
	Template corev1.Node
	Facts    bundle.Facts
}

// ReadExample reads the first node of golden/clusters/none. Root is the folder of this module.
func ReadExample(root string) (Example, error) {
	golden := filepath.Join(root, "golden")
	text, err := os.ReadFile(filepath.Join(golden, "clusters", "none", "nodes.yaml"))
	if err != nil {
		return Example{}, err
	}
	var e Example
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &e.Template); err != nil {
		return Example{}, err
	}
	delete(e.Template.Labels, "windowsmachineconfig.openshift.io/byoh")
	e.Template.ResourceVersion, e.Template.UID = "", ""
	file, err := os.Open(filepath.Join(golden, "facts", "none.json"))
	if err != nil {
		return Example{}, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	facts, err := bundle.DecodeFacts(file)
	if err == nil {
		e.Facts = facts[0]
	}
	return e, err
}

// NodeName is that of the i-th node like an example.
func NodeName(i int) string { return fmt.Sprintf("winworker-%04d", i) }

// Node returns the i-th node like the example, which is not made yet, and the facts of its host.
func (e Example) Node(i int) (*corev1.Node, bundle.Facts) {
	name, address := NodeName(i), fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
	subnet := fmt.Sprintf("10.%d.%d.0/24", 132+i/256, i%256)
	n := e.Template.DeepCopy()
	n.Name, n.Labels[corev1.LabelHostname] = name, name
	n.Annotations[overlay.SubnetAnnotation] = subnet
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}}
	return n, simulation.FactsAt(e.Facts, strings.ToUpper(name), address, subnet)
}

// AddJoined makes a Node, and the Machine that it has. It can be called again. The client knows Machines.
func AddJoined(ctx context.Context, c client.Client, n *corev1.Node) error {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machineNamespace, Name: n.Name, Labels: map[string]string{"machine.openshift.io/os-id": "Windows"},
	}}
	addresses := n.Status.Addresses
	if err := errors.Join(ignoreExists(c.Create(ctx, n)), ignoreExists(c.Create(ctx, m))); err != nil {
		return err
	}
	before, phase := m.DeepCopy(), machinev1beta1.PhaseRunning
	m.Status.Phase, m.Status.NodeRef, m.Status.Addresses = &phase, &corev1.ObjectReference{Kind: "Node", Name: n.Name}, addresses
	return c.Status().Patch(ctx, m, client.MergeFrom(before))
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
