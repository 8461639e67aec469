package jointest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/keys/signing"
)

// patcher is a user who may get and patch Nodes, and nothing else.
type patcher struct {
	*world
	client.Client
}

func (w *world) patcher() patcher {
	w.t.Helper()
	const user = "a-user-who-may-patch-nodes"
	meta := metav1.ObjectMeta{Name: user}
	w.create(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config := w.as(rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}})
	c, err := client.New(config, client.Options{Scheme: w.Scheme()})
	must(w.t, err)
	return patcher{w, c}
}

// put writes annotations of a Node.
func (p patcher) put(node string, annotations map[string]any) {
	p.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	must(p.t, err)
	must(p.t, p.Patch(p.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch)))
}

const (
	evilScript  = `C:\k\evil.ps1`
	evilService = "evil"
)

// evil is a desired state for a node, with a script and a service that runs it, urgent and with every permission.
func (w *world) evil(node string) published.Desired {
	w.t.Helper()
	d, err := published.DecodeDesired(w.told(node))
	must(w.t, err)
	own, err := d.Node.Open(nil)
	must(w.t, err)
	script := []byte("whoami\n")
	own.Files = append(own.Files, bundle.File{Path: evilScript, Digest: bundle.Of(script), Size: int64(len(script)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: script}})
	own.Services = append(own.Services, bundle.Service{
		Name: evilService, Description: "OpenShift managed evil", Start: bundle.StartAuto, Impact: bundle.ImpactNone,
		Argv:     []string{`C:\k\kube-log-runner.exe`, `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`, "-File", evilScript},
		Recovery: bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 60}, Probe: bundle.Probe{Kind: bundle.ProbeRunning, DeadlineSeconds: 30},
	})
	packed, err := published.Pack(own)
	must(w.t, err)
	d.Node, d.MaxImpact, d.Urgent = packed.Layer, bundle.ImpactReboot, true
	d.Bundle, err = bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest)
	must(w.t, err)
	return d
}

// told is the annotation of a Node.
func (w *world) told(node string) string {
	w.t.Helper()
	return w.node(node).Annotations[published.DesiredAnnotation]
}

// reported is what the agent of a node reports.
func (w *world) reported(node string) published.Report {
	w.t.Helper()
	r, _ := published.DecodeReport(w.node(node).Annotations[published.ReportAnnotation])
	return r
}

// restored waits until the operator has written the annotation again, and the node has it.
func (p patcher) restored(node, foreign string) {
	p.t.Helper()
	eventually(p.t, "what the operator has signed on "+node, func() bool {
		text := p.told(node)
		d, err := published.DecodeDesired(text)
		r := p.reported(node)
		return err == nil && text != foreign && r.State == published.StateApplied && r.Desired == d.Bundle && r.Refused == ""
	})
	p.clean(node)
}

// clean fails if the host has anything of the other bundle.
func (p patcher) clean(node string) {
	p.t.Helper()
	m := p.machines[node]
	if m.Text(evilScript) != "" || m.Status(evilService) != "" {
		p.t.Fatalf("the host of %s runs what was written on its Node", node)
	}
}

// refusal waits until a node reports that it refuses its annotation.
func (p patcher) refusal(node, text string) {
	p.t.Helper()
	eventually(p.t, "a refusal by "+node, func() bool {
		r := p.reported(node)
		return r.Refused == bundle.Of([]byte(text)) && r.State == published.StateFailed && strings.Contains(r.Message, "fix: ")
	})
	p.awaitEvent("BundleRefused", node)
	p.clean(node)
}

// TestWhoMayPatchNodesRunsNothing: on a node, on a paused one, with what was signed earlier, and with what was signed for another node.
func TestWhoMayPatchNodesRunsNothing(t *testing.T) {
	w := newWorld(t)
	const a, b = "instance-a", "instance-b"
	w.machine(a, "192.0.2.61")
	w.machine(b, "192.0.2.62")
	w.instances("192.0.2.61", "192.0.2.62")
	stop := w.operate()
	for _, name := range []string{a, b} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
	}
	p := w.patcher()
	first := w.told(a)

	evil, err := w.evil(a).Encode()
	must(t, err)
	p.put(a, map[string]any{published.PausedAnnotation: "", published.DesiredAnnotation: evil})
	p.refusal(a, evil)
	if got := w.told(a); got != evil {
		t.Error("a paused node is told of another bundle")
	}
	p.put(a, map[string]any{published.PausedAnnotation: nil})
	p.restored(a, evil)

	// The signatures of the right one, and of another node, do not help.
	_, signatures, _ := strings.Cut(first, `,"signatures":`)
	for _, text := range []string{strings.TrimSuffix(evil, "}") + `,"signatures":` + signatures, w.told(b), first} {
		p.put(a, map[string]any{published.DesiredAnnotation: text})
		p.restored(a, text)
	}

	// An operator that starts again keeps signed annotations, and replaces those that were signed earlier.
	stop()
	term := w.term()
	now := w.told(a)
	p.put(b, map[string]any{published.DesiredAnnotation: now})
	stop = w.operate()
	eventually(t, "another term", func() bool { return w.term() > term })
	p.restored(b, now) // the operator looks at all nodes at once
	if w.told(a) != now {
		t.Error("an operator that starts again writes what is right")
	}
	stop()
	p.put(a, map[string]any{published.DesiredAnnotation: first}) // while no operator runs
	eventually(t, "a refusal", func() bool { return w.reported(a).Refused == bundle.Of([]byte(first)) })
	// Another process of the agent refuses it too. Its report about something else shows that it has looked.
	must(t, w.machines[a].RestartService(t.Context(), bundle.AgentService))
	p.put(a, map[string]any{published.DesiredAnnotation: evil})
	p.refusal(a, evil)
	p.put(a, map[string]any{published.DesiredAnnotation: first})
	p.refusal(a, first)
	w.operate()
	p.restored(a, first)
	if d, err := published.DecodeDesired(w.told(a)); err != nil || d.Term <= term {
		t.Errorf("term %d after %d, %v", d.Term, term, err)
	}
}

// term is that of the operator which began last.
func (w *world) term() int64 {
	w.t.Helper()
	term, _ := strconv.ParseInt(w.signingSecret().Annotations[signing.TermAnnotation], 10, 64)
	return term
}

func (w *world) signingSecret() *corev1.Secret {
	w.t.Helper()
	var s corev1.Secret
	must(w.t, client.IgnoreNotFound(w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: signing.SecretName}, &s)))
	return &s
}

// TestSigningKeysAreRotated: a key is added, reaches the hosts, and replaces the first one. No service restarts, and nothing is refused.
func TestSigningKeysAreRotated(t *testing.T) {
	w := newWorld(t)
	const name = "instance-a"
	w.machine(name, "192.0.2.63")
	w.instances("192.0.2.63")
	w.operate()
	eventually(t, "the node", func() bool { return w.joined(name) })
	m := w.machines[name]
	eventually(t, "its bundle", func() bool { return w.reported(name).State == published.StateApplied })
	hasKeys := func(n int) bool { return strings.Count(m.Text(bundle.SigningKeysFile), "BEGIN PUBLIC KEY") == n }
	if !hasKeys(1) {
		t.Fatalf("the host has the keys %q", m.Text(bundle.SigningKeysFile))
	}
	starts := m.Starts()
	before := slices.Collect(maps.Keys(w.signingSecret().Data))
	patch := func(text string) {
		must(t, w.Patch(t.Context(), w.signingSecret(), client.RawPatch(types.MergePatchType, []byte(text))))
	}
	patch(`{"metadata":{"annotations":{"` + signing.AddAnnotation + `":""}}}`)
	eventually(t, "two keys on the host", func() bool { return hasKeys(2) && w.reported(name).State == published.StateApplied })
	if _, list, err := published.Signatures(w.told(name)); err != nil || len(list) != 2 {
		t.Errorf("%d signatures, %v", len(list), err)
	}
	patch(`{"data":{"` + before[0] + `":null}}`)
	eventually(t, "the new key alone", func() bool {
		_, list, err := published.Signatures(w.told(name))
		return hasKeys(1) && err == nil && len(list) == 1 && w.reported(name).State == published.StateApplied && w.reported(name).Refused == ""
	})
	if len(w.events("BundleRefused", name)) > 0 {
		t.Errorf("events %q", w.events("BundleRefused", name))
	}
	if after := m.Starts(); !maps.Equal(starts, after) {
		t.Errorf("services were started: %v, before %v", after, starts)
	}
}

// TestALostSigningSecretStopsUpdatesAlone: the operator makes another key, which no host knows. Hosts run on with what they have and say why they
// refuse what comes; a host that joins has the new key. With the old key beside the new one, all follow again.
func TestALostSigningSecretStopsUpdatesAlone(t *testing.T) {
	w := newWorld(t)
	const old, later = "instance-a", "instance-b"
	// A term of an operator of another test, whose clock was ahead, would be newer than what the later key signs.
	must(t, client.IgnoreNotFound(w.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: signing.SecretName}})))
	w.machine(old, "192.0.2.65")
	w.instances("192.0.2.65")
	stop := w.operate()
	w.allJoin([]string{old})
	m := w.machines[old]
	eventually(t, "its bundle", func() bool { return w.reported(old).State == published.StateApplied })
	starts, lost := m.Starts(), w.signingSecret()
	stop()
	must(t, w.Delete(t.Context(), w.signingSecret()))
	w.operate()
	w.machine(later, "192.0.2.66")
	w.addEntry("192.0.2.66")
	w.allJoin([]string{later})
	eventually(t, "a refusal with its fix", func() bool {
		r := w.reported(old)
		return r.Refused != "" && strings.Contains(r.Message, published.ErrUntrusted.Error()) && strings.Contains(r.Message, "fix: ")
	})
	if r := w.reported(later); r.Refused != "" {
		t.Errorf("a host that has joined since refuses %s", r.Message)
	}
	if !w.joined(old) || !maps.Equal(m.Starts(), starts) {
		t.Errorf("the host was changed: services were started %v, before %v", m.Starts(), starts)
	}
	patch, err := json.Marshal(map[string]any{"data": lost.Data})
	must(t, err)
	must(t, w.Patch(t.Context(), w.signingSecret(), client.RawPatch(types.MergePatchType, patch)))
	for _, name := range []string{old, later} {
		eventually(t, "both keys on "+name, func() bool {
			r := w.reported(name)
			return r.State == published.StateApplied && r.Refused == "" && strings.Count(w.machines[name].Text(bundle.SigningKeysFile), "BEGIN PUBLIC KEY") == 2
		})
	}
}
