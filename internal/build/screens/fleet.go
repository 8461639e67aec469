package screens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/testenv/manifests"
	"wmco/report/mustgather"
)

// example is the cluster that the nodes are added to, below golden.
const example = "clusters"

// key makes the digests of secrets: that of no cluster.
const key = "the key of no cluster, for pictures"

// version is that of the node agents.
const version = "0.1.0"

// instances are the hosts of the cluster, by the names of their Nodes.
func instances() []string {
	return []string{"win-1", "win-2", "win-3", "win-4", "win-5", "win-6"}
}

func addressOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 140, byte(21 + i)}) }

// Fleet is a cluster whose Windows nodes have the bundle of its objects.
type Fleet struct {
	golden string
	now    time.Time
	// objects are those of the cluster but for Windows Nodes.
	objects []any
	Nodes   []*corev1.Node
	// Bundles are those of the nodes, by name.
	Bundles map[string]layers.Wanted
	secrets map[string]*corev1.Secret
}

// NewFleet returns the fleet at a time. Golden is the folder with the example clusters.
func NewFleet(ctx context.Context, golden string, now time.Time) (*Fleet, error) {
	f := &Fleet{golden: golden, now: now, secrets: map[string]*corev1.Secret{}}
	list, err := manifests.Read(filepath.Join(golden, example, "common"), filepath.Join(golden, example, "none"))
	if err != nil {
		return nil, err
	}
	var entries strings.Builder
	for i := range instances() {
		fmt.Fprintf(&entries, "  %s: username=Administrator\n", addressOf(i))
	}
	f.objects = append(f.objects, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "windows-instances", "namespace": gather.OperatorNamespace},
		"data": data(entries.String()),
	})
	facts, err := gather.FactsFile(filepath.Join(golden, "facts", "none.json"))
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		switch {
		case m.GetKind() == "ConfigMap" && m.GetName() == "windows-instances":
		case m.GetKind() == "Node" && m.GetLabels()[corev1.LabelOSStable] == "windows":
			if err := f.addNodes(m.Unstructured, facts[0]); err != nil {
				return nil, err
			}
		default:
			f.objects = append(f.objects, m.Object)
		}
	}
	f.Bundles, err = f.Render(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range f.Nodes {
		if err := f.Rolled(n, plan.Turn{
			Impact: bundle.ImpactRestart, Begun: f.Ago(50 * time.Hour), Ended: f.Ago(50*time.Hour - 74*time.Second),
		}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func data(text string) map[string]any {
	values := map[string]any{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		values[name] = value
	}
	return values
}

// Ago returns a time before now.
func (f *Fleet) Ago(d time.Duration) time.Time { return f.now.Add(-d) }

// addNodes makes a Node for each instance of that of another one.
func (f *Fleet) addNodes(like *unstructured.Unstructured, facts bundle.Facts) error {
	for i, name := range instances() {
		text, err := like.MarshalJSON()
		if err != nil {
			return err
		}
		var n corev1.Node
		if err := json.Unmarshal(text, &n); err != nil {
			return err
		}
		address, subnet := addressOf(i).String(), fmt.Sprintf("10.132.%d.0/24", i)
		n.Name, n.Labels[corev1.LabelHostname], n.Labels[corev1.LabelWindowsBuild] = name, name, facts.OSBuild
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}}
		n.Annotations["k8s.ovn.org/hybrid-overlay-node-subnet"] = subnet
		n.Annotations[published.VersionAnnotation], n.Annotations[published.DesiredVersionAnnotation] = version, version
		own := simulation.FactsAt(facts, strings.ToUpper(name), address, subnet)
		for k := range n.Status.Conditions {
			n.Status.Conditions[k].LastHeartbeatTime, n.Status.Conditions[k].LastTransitionTime = metav1.NewTime(f.Ago(time.Minute)), metav1.NewTime(f.Ago(400*time.Hour))
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: published.Condition, Status: corev1.ConditionTrue,
			LastHeartbeatTime:  metav1.NewTime(f.Ago(time.Minute)),
			LastTransitionTime: metav1.NewTime(f.Ago(50 * time.Hour)),
		})
		f.Nodes = append(f.Nodes, &n)
		if err := annotateNode(&n, published.ReportAnnotation, published.Report{
			Program: version, State: published.StateApplied, Facts: &own,
		}.Encode); err != nil {
			return err
		}
	}
	return nil
}

func annotateNode(n *corev1.Node, name string, encode func() (string, error)) error {
	text, err := encode()
	n.Annotations[name] = text
	return err
}

// errRefused means that the inputs are no example any more.
var errRefused = errors.New("the inputs are refused")

// Render returns the bundles of the nodes, with other objects in place of those of the same name.
func (f *Fleet) Render(ctx context.Context, with ...string) (map[string]layers.Wanted, error) {
	folder, err := os.MkdirTemp("", "wmco-screens-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a folder that stays does no harm
	if err := f.Write(folder); err != nil {
		return nil, err
	}
	hosts, err := desired.ReadHosts(ctx, desired.Source{
		Objects: objects.NewPathsReader(append([]string{folder}, with...), nil), Key: bundle.Key(key),
		Payload: filepath.Join(f.golden, "payload"), Gather: gather.Options{Complete: true},
	})
	if err != nil {
		return nil, err
	}
	list, findings, err := hosts.RenderBundles(hosts.ListJoined())
	if err != nil {
		return nil, err
	}
	if blocking := desired.BlockingFindings(findings); len(blocking) > 0 || len(list) != len(f.Nodes) {
		return nil, fmt.Errorf("rendering the %d nodes of %d: %w: %v", len(list), len(f.Nodes), errRefused, blocking)
	}
	bundles := map[string]layers.Wanted{}
	for _, r := range list {
		if bundles[r.Node.Name], err = layers.PackBundle(r.Node.Name, r.Bundle.Bundle); err != nil {
			return nil, err
		}
	}
	return bundles, nil
}

// Rolled gives a node its bundle, and the turn that has brought it.
func (f *Fleet) Rolled(n *corev1.Node, turn plan.Turn) error {
	if err := f.Publish(n, f.Bundles[n.Name], turn); err != nil {
		return err
	}
	return f.Report(n, published.Report{State: published.StateApplied, Desired: f.Bundles[n.Name].Bundle}, turn.Ended)
}

// Publish gives a node its turn, with a bundle that it may have applied.
func (f *Fleet) Publish(n *corev1.Node, w layers.Wanted, turn plan.Turn) error {
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	if err != nil {
		return err
	}
	if before := state.Turn; !before.IsZero() {
		before.Result = published.StateApplied
		state.Past = append([]plan.Turn{before}, state.Past...)
	}
	turn.Bundle, turn.Permitted = w.Bundle, turn.Begun
	state.Turn = turn
	if err := annotateNode(n, published.RolloutAnnotation, state.Encode); err != nil {
		return err
	}
	d := w.DesiredAnnotation(gather.OperatorNamespace, turn.Impact)
	for _, s := range layers.PlanChanges([]layers.Wanted{w}, layers.Observed{Nodes: []layers.Node{{Name: n.Name, Known: true}}}).Create {
		f.secrets[s.Name] = s.SecretObject(gather.OperatorNamespace)
	}
	return annotateNode(n, published.DesiredAnnotation, d.Encode)
}

// Report is the report of a node's agent since a time. A bundle that is applied is the desired one.
func (f *Fleet) Report(n *corev1.Node, r published.Report, since time.Time) error {
	before, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	if err != nil {
		return err
	}
	r.Program, r.Facts, r.Applied, r.Layers = before.Program, before.Facts, before.Applied, before.Layers
	if r.State == published.StateApplied {
		d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		if err != nil {
			return err
		}
		r.Applied, r.Layers = r.Desired, []bundle.Digest{d.Cluster.Digest, d.Node.Digest}
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == published.Condition {
			c.LastTransitionTime = metav1.NewTime(since)
		}
	}
	return annotateNode(n, published.ReportAnnotation, r.Encode)
}

// Say adds reports of the operator: conditions that are False.
func (f *Fleet) Say(conditions ...metav1.Condition) {
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{
			"type": c.Type, "status": "False", "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
		})
	}
	f.objects = append(f.objects, map[string]any{
		"apiVersion": "windowsmachineconfig.openshift.io/v1alpha1", "kind": "WindowsNodesStatus",
		"metadata": map[string]any{"name": "windows-nodes", "namespace": gather.OperatorNamespace}, "status": map[string]any{"conditions": list},
	})
}

// Objects returns all objects of the cluster.
func (f *Fleet) Objects() ([]unstructured.Unstructured, error) {
	all := append([]any{}, f.objects...)
	for _, n := range f.Nodes {
		n.APIVersion, n.Kind = "v1", "Node"
		all = append(all, n)
	}
	for _, s := range f.secrets {
		s.APIVersion, s.Kind = "v1", "Secret"
		all = append(all, s)
	}
	var list []unstructured.Unstructured
	for _, o := range all {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		var u unstructured.Unstructured
		if err := json.Unmarshal(text, &u.Object); err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// Write writes the objects to a folder, as of now.
func (f *Fleet) Write(folder string) error {
	list, err := f.Objects()
	if err != nil {
		return err
	}
	for i, o := range list {
		text, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.json", i)), text, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, mustgather.CollectedFile), []byte(f.now.Format(time.RFC3339)+"\n"), 0o600)
}
