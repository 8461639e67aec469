package world

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/status"
	"wmco/internal/test/observer"
)

// The rules of the world, beside those of its observer.
const (
	ruleRest    = "nodes do not come to rest"
	ruleRender  = "a node has something else than what is rendered"
	ruleSecrets = "Secrets of layers are left"
	// ruleExecutables is about what hosts have at any time.
	ruleExecutables = "a host has executables that were not signed for its node"
	ruleEnds        = "the operator ends by itself"
	ruleGoroutines  = "the operator gets more and more goroutines"
	ruleMemory      = "the operator gets more and more memory"
)

const (
	// moreGoroutines and moreHeap (in bytes) are how much more an operator may use at rest than when it was first at rest, moreHeapShare is a part of
	// that more: caches hold what the last storm has brought.
	moreGoroutines = 40
	moreHeap       = 32 << 20
	moreHeapShare  = 0.5
)

// rest waits until all nodes whose hosts are on have what is rendered here, and nothing of a rollout is left on them. Then it checks what holds at rest.
func (w *world) rest(t testing.TB) {
	t.Helper()
	w.tell("all nodes come to rest")
	settled := w.settle(t, isOn)
	w.observer.CheckLeft() // before anything takes time, in which a boot may come that Windows waits for
	if !settled {
		return
	}
	w.noteLogins()
	w.tell("they are at rest")
	w.observer.CheckEvictions()
	w.checkSecrets(t)
	w.checkLayers(t)
	w.checkShown(t)
	w.checkKept()
	w.checkUsage()
	w.checkLogins()
	w.forgetSettings()
	w.observer.KeepRules(w.settings.rules())
}

// settle waits until machines have what is rendered here, and nothing of a rollout is left on their nodes.
func (w *world) settle(t testing.TB, is func(*machine) bool) bool {
	t.Helper()
	begun := time.Now()
	rule, why := ruleRest, "nothing was looked at"
	for why != "" {
		if time.Since(begun) > w.options.patience {
			w.observer.Violate(rule, "after %s: %s", w.options.patience, why)
			w.tell("%s", w.observer)
			return false
		}
		w.revive()
		synctest.Wait() // until the observer has seen what was written last
		rule, why = ruleRest, w.unrest(t, is)
		if why == "" {
			rule, why = ruleRender, w.unlike(t, is)
		}
		if why != "" {
			w.retryCutOff(t)
			w.authorizeLost(t)
			w.relistUnmarked(t)
			pause(w.ctx, time.Minute)
		}
	}
	return true
}

// retryCutOff does what the fix of a rollback says that the API server, which was away, has caused.
func (w *world) retryCutOff(t testing.TB) {
	t.Helper()
	for _, m := range w.named(isOn) {
		n := w.observer.Snapshot()[m.name]
		r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		if r.State == published.StateRolledBack && r.Fault == published.FaultAPI && n.Annotations[published.RetryAnnotation] == r.Retry {
			w.annotate(t, m, published.RetryAnnotation)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// unrest returns why the nodes are not at rest; empty if they are.
func (w *world) unrest(t testing.TB, is func(*machine) bool) string {
	left := w.endOf(t)
	nodes := w.observer.Snapshot()
	var busy []string
	for _, m := range w.named(is) {
		n, ok := nodes[m.name]
		if !ok || !observer.IsAtRest(n) {
			busy = append(busy, observer.DescribeNode(n))
		} else if why := w.notUpgraded(n); why != "" {
			busy = append(busy, why)
		}
	}
	if why := w.unrestOfHosts(nodes); why != "" {
		return why
	}
	switch {
	case left != "":
		return left
	case len(nodes) != w.countNodes(nodes):
		return fmt.Sprintf("%d Nodes of %d", len(nodes), w.countNodes(nodes))
	case len(busy) > 0:
		const some = 5
		return fmt.Sprintf("%d nodes are not at rest: %s", len(busy), strings.Join(busy[:min(some, len(busy))], "; "))
	}
	return ""
}

// countNodes returns how many Nodes there have to be: all but those that have left already.
func (w *world) countNodes(nodes map[string]corev1.Node) int {
	return w.countHosts(nodes) + len(w.named(func(m *machine) bool {
		_, is := nodes[m.name]
		return is || !m.ends
	}))
}

// notUpgraded returns why a node is not yet one of the operator's release.
func (w *world) notUpgraded(n corev1.Node) string {
	r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	is, version, permitted := w.present(), n.Annotations[published.VersionAnnotation], n.Annotations[published.FetchAnnotation]
	switch {
	case version != is.version || n.Annotations[published.DesiredVersionAnnotation] != is.version:
		return fmt.Sprintf("%s has version %s, wanted %s, of operator %s; fetches %+v", n.Name, version, n.Annotations[published.DesiredVersionAnnotation], is.version, r.Fetch)
	case permitted != "" || n.Labels[published.UpgradingLabel] != "":
		return fmt.Sprintf("%s may fetch %.20s, is upgraded: %q", n.Name, permitted, n.Labels[published.UpgradingLabel])
	}
	return ""
}

// render renders all nodes from the cluster as it is, by their names.
func (w *world) render(ctx context.Context) (map[string]desired.Rendered, error) {
	var key corev1.Secret
	if err := w.Get(ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-digest-key"}, &key); err != nil {
		return nil, err
	}
	signs := &signing.Keys{Live: w, Client: w, Namespace: gather.OperatorNamespace, Now: time.Now}
	records := &hosts.Records{Live: w, Client: w, Cache: w, Namespace: gather.OperatorNamespace}
	login := &hosts.Login{Live: w, Client: w, Namespace: gather.OperatorNamespace, Records: records, RecordKey: key.Data["key"]}
	reader := &inputs.Reader{
		Keys: signs.ReadPublicKeys, Log: logr.Discard(), Cache: w, Namespace: gather.OperatorNamespace, Resolver: w.names, Now: time.Now,
		Records:  records.CurrentRecords,
		LoginKey: login.ReadPublicKey,
		Image:    func(context.Context) (string, error) { return w.present().image, nil },
		Source: desired.Source{
			Objects: objects.NewClusterReader(w), Key: key.Data["key"], Set: w.present().set,
			Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: true},
		},
	}
	all, err := reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	list, findings, err := all.RenderBundles(all.ListJoined())
	if err != nil {
		return nil, err
	}
	if found := append(slices.Clone(all.Findings), findings...); found.Refused() {
		return nil, fmt.Errorf("the inputs are refused: %+v", found.Sorted()[0])
	}
	rendered := map[string]desired.Rendered{}
	for _, r := range list {
		rendered[r.Node.Name] = r
	}
	return rendered, nil
}

// unlike returns why the nodes do not have what is rendered; empty if they have. Of some hosts every file and service is compared.
func (w *world) unlike(t testing.TB, is func(*machine) bool) string {
	t.Helper()
	rendered, err := w.render(w.ctx)
	if err != nil {
		return err.Error()
	}
	nodes := w.observer.Snapshot()
	for _, m := range w.named(is) {
		r, ok := rendered[m.name]
		d, err := published.DecodeDesired(nodes[m.name].Annotations[published.DesiredAnnotation])
		manifest, unmade := r.Bundle.Manifest()
		if !ok || err != nil || unmade != nil || d.Bundle != manifest.Digest {
			return fmt.Sprintf("%s is told of %s (%v), and %s is rendered (%v)", m.name, d.Bundle.Short(), err, manifest.Digest.Short(), unmade)
		}
	}
	const compared = 10
	for _, m := range w.choose(compared, is) {
		request, err := rendered[m.name].ArchiveRequest(w.present().contents)
		if err != nil {
			return err.Error()
		}
		seen, err := m.Observe(w.ctx, request)
		if err != nil {
			return fmt.Sprintf("comparing the host of %s: %v", m.name, err)
		}
		if !seen.InSync {
			return fmt.Sprintf("the host of %s has something else than its bundle: %+v", m.name, seen.Actions)
		}
	}
	return w.unlikeHosts(rendered)
}

// checkSecrets checks that the Secrets of layers are those that nodes have, a while after the last one has them.
func (w *world) checkSecrets(t testing.TB) {
	t.Helper()
	var left []string
	for begun := time.Now(); time.Since(begun) < w.options.collection; pause(w.ctx, time.Minute) {
		wanted := map[string]bool{}
		for _, n := range w.observer.Snapshot() {
			d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
			for _, l := range []published.Layer{d.Cluster, d.Node} {
				for _, name := range l.Names() {
					wanted[name] = true
				}
			}
		}
		var secrets corev1.SecretList
		w.try(t, "Secrets", func() error {
			return w.List(w.ctx, &secrets, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
		})
		left = nil
		for _, x := range secrets.Items {
			if !wanted[x.Name] {
				left = append(left, x.Name)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	w.observer.Violate(ruleSecrets, "%d %s after all nodes were at rest", len(left), w.options.collection)
}

// checkLayers checks that what nodes are told of is whole, and that they can read nothing for long that is replaced.
func (w *world) checkLayers(t testing.TB) {
	t.Helper()
	wanted := map[string]bool{}
	for _, n := range w.observer.Snapshot() {
		d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		for _, l := range []published.Layer{d.Cluster, d.Node} {
			for _, name := range l.Names() {
				wanted[name] = true
			}
			if l.Parts == 0 {
				continue
			}
			if err := w.attempt(func() error { _, err := layers.ReadLayer(w.ctx, w, gather.OperatorNamespace, l.Digest); return err }); err != nil && !w.hasForeign(l) {
				w.observer.Violate(ruleRender, "a layer of %s: %v", n.Name, err)
			}
		}
	}
	var role rbacv1.Role
	w.try(t, "the Role of nodes", func() error {
		return w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: layers.Access}, &role)
	})
	x := &w.trail
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.unwanted, func(name string, _ time.Time) bool { return wanted[name] })
	for _, rule := range role.Rules {
		for _, name := range rule.ResourceNames {
			if !wanted[name] && x.unwanted[name].IsZero() {
				x.unwanted[name] = time.Now()
			}
			if age := time.Since(x.unwanted[name]); !wanted[name] && age > readableFor {
				w.observer.Violate(ruleReadable, "%s, which was replaced %s ago", name, age)
			}
		}
	}
}

// hasForeign reports whether a person has replaced a part of a layer. The operator replaces it when a node needs it.
func (w *world) hasForeign(l published.Layer) bool {
	return slices.ContainsFunc(l.Names(), func(name string) bool {
		var s corev1.Secret
		err := w.attempt(func() error {
			return w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: name}, &s)
		})
		return err == nil && w.foreign[s.UID]
	})
}

// checkShown looks for secrets in what the operator writes for people.
func (w *world) checkShown(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(w.readStatusObject(t).Object)
	must(t, err)
	w.observer.SearchText("the status of the operator", string(text))
	var configs corev1.ConfigMapList
	w.try(t, "ConfigMaps", func() error { return w.List(w.ctx, &configs, client.InNamespace(gather.OperatorNamespace)) })
	for _, c := range configs.Items {
		w.observer.SearchText("ConfigMap "+c.Name, fmt.Sprint(c.Data, c.Annotations))
	}
}

// readStatusObject reads what the operator has written last; it is empty before.
func (w *world) readStatusObject(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	written := &unstructured.Unstructured{}
	written.SetAPIVersion(status.Group + "/" + status.Version)
	written.SetKind(status.Kind)
	w.try(t, "the status", func() error {
		return client.IgnoreNotFound(w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: status.Name}, written))
	})
	return written
}

// readStatus is the status of that.
func (w *world) readStatus(t testing.TB) (s status.Status) {
	t.Helper()
	fields, _, err := unstructured.NestedMap(w.readStatusObject(t).Object, "status")
	must(t, err)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s))
	return s
}

// checkKept checks that no confirmation of a person is left.
func (w *world) checkKept() {
	for _, n := range w.observer.Snapshot() {
		if n.Annotations[published.ConfirmAnnotation] != "" {
			w.observer.Violate(ruleDeleted, "%s keeps the confirmation of a deletion that is over", n.Name)
		}
	}
}

// checkUsage compares what is used with what was used when all nodes were first at rest in the life of the operator.
func (w *world) checkUsage() {
	if !w.options.boundsUsage {
		return
	}
	u := w.usage()
	if w.baseline == nil {
		w.baseline = &u
		return
	}
	if most := w.baseline.goroutines + moreGoroutines; u.goroutines > most {
		w.observer.Violate(ruleGoroutines, "%d goroutines at rest, %d before", u.goroutines, w.baseline.goroutines)
	}
	if most := w.baseline.heap + uint64(moreHeapShare*float64(w.baseline.heap)) + moreHeap; u.heap > most {
		w.observer.Violate(ruleMemory, "%d MiB at rest, %d MiB before", u.heap>>20, w.baseline.heap>>20)
	}
}
