package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

const (
	// moreGoroutines and moreHeap (in bytes) are how much more an operator may use at rest than when it was first at rest, moreHeapShare is a part of
	// that more: caches hold what the last storm has brought.
	moreGoroutines = 40
	moreHeap       = 32 << 20
	moreHeapShare  = 0.5
)

// rest waits until all nodes whose hosts are on have what is rendered here, and nothing of a rollout is left on them. Then it checks what holds at rest.
func (s *soak) rest(t testing.TB) {
	t.Helper()
	begun, said := time.Now(), time.Now()
	rule, why := ruleRest, "nothing was looked at"
	for why != "" {
		if time.Since(begun) > s.options.patience {
			s.observer.violate(rule, "after %s: %s", s.options.patience, why)
			s.observer.checkLeft()
			return
		}
		if s.operator != nil {
			select {
			case <-s.operator.ended:
				s.observer.violate(ruleEnds, "%s", s.lastLine())
				s.live(t)
			default: // it lives
			}
		}
		s.followAdoptions(t)
		rule = ruleRest
		if why = s.leavingUnrest(); why == "" {
			why = s.adoptingUnrest()
		}
		if why == "" {
			why = s.unrest()
		}
		if why == "" {
			rule, why = ruleRender, s.unlike(t)
		}
		if why == "" {
			rule, why = ruleKeys, s.keysUnrest()
		}
		if why != "" {
			pause(s.ctx, s.lookAgain())
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			t.Logf("not at rest after %s: %s", time.Since(begun).Round(time.Second), why)
		}
	}
	s.waited = time.Since(begun)
	s.observer.checkEvictions()
	s.checkSecrets(t)
	s.checkShown(t)
	s.checkKept()
	s.checkUsage()
	s.observer.checkLeft()
	s.observer.restAt(s.settings.maxUnavailable)
}

// lookAgain is the time between two looks. The moments of an adoption are short.
func (s *soak) lookAgain() time.Duration {
	if len(s.adopting) > 0 {
		return 100 * time.Millisecond
	}
	return time.Second
}

func (s *soak) lastLine() string {
	s.logMutex.Lock()
	defer s.logMutex.Unlock()
	if len(s.logged) == 0 {
		return "it has logged nothing"
	}
	return s.logged[len(s.logged)-1]
}

// unrest returns why the nodes are not at rest; empty if they are.
func (s *soak) unrest() string {
	nodes := s.observer.snapshot()
	var busy []string
	for _, m := range s.named(isOn) {
		n, ok := nodes[m.name]
		if !ok || !isAtRest(n) {
			busy = append(busy, describe(m.name, n))
		}
	}
	switch {
	case len(nodes) != len(s.machines):
		return fmt.Sprintf("%d Nodes of %d", len(nodes), len(s.machines))
	case len(busy) > 0:
		const some = 5
		return fmt.Sprintf("%d nodes are not at rest: %s", len(busy), strings.Join(busy[:min(some, len(busy))], "; "))
	}
	return ""
}

// isAtRest reports whether a node is Ready and has what it is told, nothing of a rollout is left on it, and no boot that was asked for is to come.
func isAtRest(n corev1.Node) bool {
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, unread := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, undecoded := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	drastic := d.MaxImpact == bundle.ImpactDrain || d.MaxImpact == bundle.ImpactReboot
	return err == nil && unread == nil && undecoded == nil && isReady(n) && r.State == published.StateApplied && r.Desired == d.Bundle && r.Applied == d.Bundle &&
		!isCordonedByUs(n) && state.Claim.IsZero() && !drastic && !awaitsBoot(n, r, state)
}

// awaitsBoot reports whether a boot is to come that was asked for with the annotation: its turn may not have begun.
func awaitsBoot(n corev1.Node, r published.Report, state windowsnode.RolloutState) bool {
	value := n.Annotations[published.RebootAnnotation]
	asked := bundle.Of([]byte(value))
	return value != "" && asked != r.Rebooted && asked != state.Booted
}

func describe(name string, n corev1.Node) string {
	d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, _ := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	return fmt.Sprintf("%s: Ready %t, unschedulable %t, cordoned for %q, desired %s with at most %s, reported %s for %s with %s needed (%s), turn %+v, claim %+v", name, isReady(n), n.Spec.Unschedulable,
		n.Annotations[published.CordonAnnotation], d.Bundle.Short(), d.MaxImpact, r.State, r.Desired.Short(), r.Impact, r.Message, state.Turn, state.Claim)
}

// readInputs reads the cluster as it is, with these records of hosts too.
func (s *soak) readInputs(ctx context.Context, more ...record.Record) (*desired.Hosts, error) {
	var key corev1.Secret
	if err := s.Get(ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-digest-key"}, &key); err != nil {
		return nil, err
	}
	signs := &signing.Keys{Live: s, Client: s, Namespace: gather.OperatorNamespace, Now: time.Now}
	records := &hosts.Records{Live: s, Client: s, Cache: s, Namespace: gather.OperatorNamespace}
	reader := &inputs.Reader{
		Keys: signs.ReadPublicKeys, Log: logr.Discard(), Cache: s, Namespace: gather.OperatorNamespace, Resolver: noNames{}, Now: time.Now,
		Records: func(ctx context.Context) (record.Set, error, error) {
			all, damaged, err := records.CurrentRecords(ctx)
			return withRecords(all, more...), damaged, err
		},
		LoginKey: func(context.Context) (string, error) {
			return s.loginLine(), nil
		},
		Source: desired.Source{Objects: objects.NewClusterReader(s), Key: key.Data["key"], Set: executables.set, Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: true}},
	}
	return reader.Read(ctx)
}

func withRecords(all record.Set, more ...record.Record) record.Set {
	for _, id := range all.IDs() {
		if r, ok := all.RecordByID(id); ok {
			more = append(more, r)
		}
	}
	return record.NewSet(more...)
}

// render renders all nodes from the cluster as it is.
func (s *soak) render(ctx context.Context) (map[string]desired.Rendered, error) {
	all, err := s.readInputs(ctx)
	if err != nil {
		return nil, err
	}
	return renderNodes(all, all.ListJoined())
}

// renderNodes renders some nodes, by their names.
func renderNodes(all *desired.Hosts, nodes []render.Node) (map[string]desired.Rendered, error) {
	list, findings, err := all.RenderBundles(nodes)
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

// renderUnadopted renders a node of the existing operator as one of this one.
func (s *soak) renderUnadopted(ctx context.Context, a *adopting, uid types.UID) (archive.Request, error) {
	all, err := s.readInputs(ctx, record.Record{Entry: a.entry, Address: a.entry, Account: remote.DefaultUser, Node: a.name, NodeUID: uid, Origin: record.OriginJoined})
	if err != nil {
		return archive.Request{}, err
	}
	nodes, err := all.SelectByNode(a.name)
	if err != nil {
		return archive.Request{}, err
	}
	n, _ := desired.WithFacts(nodes[0], a.facts, a.name) // facts of another host would be a bundle without them, which is no request
	rendered, err := renderNodes(all, []render.Node{n})
	if err != nil {
		return archive.Request{}, err
	}
	return rendered[a.name].ArchiveRequest(executables.contents)
}

// unlike returns why the nodes do not have what is rendered; empty if they have. Of some hosts every file and service is compared.
func (s *soak) unlike(t testing.TB) string {
	t.Helper()
	rendered, err := s.render(s.ctx)
	if err != nil {
		return err.Error()
	}
	nodes := s.observer.snapshot()
	on := s.named(isOn)
	for _, m := range on {
		r, ok := rendered[m.name]
		d, err := published.DecodeDesired(nodes[m.name].Annotations[published.DesiredAnnotation])
		manifest, unmade := r.Bundle.Manifest()
		if !ok || err != nil || unmade != nil || d.Bundle != manifest.Digest {
			return fmt.Sprintf("%s is told of %s (%v), and %s is rendered (%v)", m.name, d.Bundle.Short(), err, manifest.Digest.Short(), unmade)
		}
	}
	const compared = 10
	for _, m := range s.choose(compared, isOn) {
		request, err := rendered[m.name].ArchiveRequest(executables.contents)
		if err != nil {
			return err.Error()
		}
		seen, err := m.Observe(s.ctx, request)
		if err != nil {
			return fmt.Sprintf("comparing the host of %s: %v", m.name, err)
		}
		if !seen.InSync {
			return fmt.Sprintf("the host of %s has something else than its bundle: %+v", m.name, seen.Actions)
		}
	}
	return ""
}

// checkSecrets checks that the Secrets of layers are those that nodes have, a while after the last one has them.
func (s *soak) checkSecrets(t testing.TB) {
	t.Helper()
	var left []string
	for begun := time.Now(); time.Since(begun) < s.options.collection; pause(s.ctx, 500*time.Millisecond) {
		wanted := map[string]bool{}
		for _, n := range s.observer.snapshot() {
			d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
			for _, l := range []published.Layer{d.Cluster, d.Node} {
				for _, name := range l.Names() {
					wanted[name] = true
				}
			}
		}
		var secrets corev1.SecretList
		s.try(t, "Secrets", func() error {
			return s.List(s.ctx, &secrets, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
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
	s.observer.violate(ruleSecrets, "%d %s after all nodes were at rest", len(left), s.options.collection)
}

// checkShown looks for secrets in what the operator writes for people.
func (s *soak) checkShown(t testing.TB) {
	t.Helper()
	said := &unstructured.Unstructured{}
	said.SetAPIVersion(status.Group + "/" + status.Version)
	said.SetKind(status.Kind)
	s.try(t, "the status", func() error {
		return client.IgnoreNotFound(s.Get(s.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: status.Name}, said))
	})
	text, err := json.Marshal(said.Object)
	must(t, err)
	s.observer.searchText("the status of the operator", string(text))
	var configs corev1.ConfigMapList
	s.try(t, "ConfigMaps", func() error { return s.List(s.ctx, &configs, client.InNamespace(gather.OperatorNamespace)) })
	for _, c := range configs.Items {
		s.observer.searchText("ConfigMap "+c.Name, fmt.Sprint(c.Data, c.Annotations))
	}
}

// checkKept checks that what an administrator did is there.
func (s *soak) checkKept() {
	n, ok := s.observer.snapshot()[s.cordoned]
	if s.cordoned != "" && ok && (!n.Spec.Unschedulable || isCordonedByUs(n)) {
		s.observer.violate(ruleKept, "the cordon of %s", s.cordoned)
	}
}

// checkUsage compares what the operator uses with what it used when all nodes were first at rest in its life.
func (s *soak) checkUsage() {
	u, err := s.operator.usage()
	if err != nil {
		s.observer.violate(ruleEnds, "%v: %s", err, s.lastLine())
		return
	}
	s.usages = append(s.usages, u)
	if s.baseline == nil || !s.options.boundsUsage {
		s.baseline = &u
		return
	}
	if most := s.baseline.goroutines + moreGoroutines; u.goroutines > most {
		s.observer.violate(ruleGoroutines, "%d goroutines at rest, %d before", u.goroutines, s.baseline.goroutines)
	}
	if most := s.baseline.heap + uint64(moreHeapShare*float64(s.baseline.heap)) + moreHeap; u.heap > most {
		s.observer.violate(ruleMemory, "%d MiB at rest, %d MiB before", u.heap>>20, s.baseline.heap>>20)
	}
}
