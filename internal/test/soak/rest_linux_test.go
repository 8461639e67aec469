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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/status"
	"wmco/internal/test/observer"
)

// The rules of the soak, beside those of its observer.
const (
	ruleKept       = observer.RuleProtected
	ruleRest       = "nodes do not come to rest"
	ruleRender     = "a node has something else than what is rendered"
	ruleSecrets    = "Secrets of layers are left"
	ruleEnds       = "the operator ends by itself"
	ruleGoroutines = "the operator gets more and more goroutines"
	ruleMemory     = "the operator gets more and more memory"
)

const (
	// moreGoroutines and moreHeap (in bytes) are how much more an operator may use at rest than when it was first at rest, moreHeapShare is a part of
	// that more: caches hold what the last storm has brought.
	moreGoroutines = 40
	moreHeap       = 32 << 20
	moreHeapShare  = 0.5
)

// rest waits until all nodes whose hosts are on have the bundles rendered here, and nothing of a rollout is left on them. Then it checks what holds
// at rest.
func (s *soak) rest(t testing.TB) {
	t.Helper()
	begun, errOut := time.Now(), time.Now()
	rule, why := ruleRest, "nothing was looked at"
	for why != "" {
		if time.Since(begun) > s.options.patience {
			s.observer.Violate(rule, "after %s: %s", s.options.patience, why)
			s.observer.CheckLeft()
			return
		}
		if s.operator != nil {
			select {
			case <-s.operator.ended:
				s.observer.Violate(ruleEnds, "%s", s.lastLine())
				s.live(t)
			default: // it lives
			}
		}
		rule, why = ruleRest, s.unrest()
		if why == "" {
			rule, why = ruleRender, s.unlike(t)
		}
		if why != "" {
			pause(s.ctx, time.Second)
		}
		if time.Since(errOut) > time.Minute {
			errOut = time.Now()
			t.Logf("not at rest after %s: %s", time.Since(begun).Round(time.Second), why)
		}
	}
	s.waited = time.Since(begun)
	s.observer.CheckEvictions()
	s.checkSecrets(t)
	s.checkShown(t)
	s.checkKept()
	s.checkUsage()
	s.observer.CheckLeft()
	s.observer.KeepRules(s.settings.rules())
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
	nodes := s.observer.Snapshot()
	var busy []string
	for _, m := range s.named(isOn) {
		n, ok := nodes[m.name]
		if !ok || !observer.IsAtRest(n) {
			busy = append(busy, observer.DescribeNode(n))
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

// render renders all nodes from the cluster as it is, by their names.
func (s *soak) render(ctx context.Context) (map[string]desired.Rendered, error) {
	var key corev1.Secret
	if err := s.Get(ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-digest-key"}, &key); err != nil {
		return nil, err
	}
	signs := &signing.Keys{Live: s, Client: s, Namespace: gather.OperatorNamespace, Now: time.Now}
	records := &hosts.Records{Live: s, Client: s, Cache: s, Namespace: gather.OperatorNamespace}
	reader := &inputs.Reader{
		Keys: signs.ReadPublicKeys, Log: logr.Discard(), Cache: s, Namespace: gather.OperatorNamespace, Resolver: noNames{}, Now: time.Now,
		Records:  records.CurrentRecords,
		LoginKey: func(context.Context) (string, error) { return "", nil },
		Source: desired.Source{
			Objects: objects.NewClusterReader(s), Key: key.Data["key"], Set: executables.set,
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

// unlike returns why the nodes do not have their rendered bundles; empty if they have. Of some hosts every file and service is compared.
func (s *soak) unlike(t testing.TB) string {
	t.Helper()
	rendered, err := s.render(s.ctx)
	if err != nil {
		return err.Error()
	}
	nodes := s.observer.Snapshot()
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
		for _, n := range s.observer.Snapshot() {
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
	s.observer.Violate(ruleSecrets, "%d %s after all nodes were at rest", len(left), s.options.collection)
}

// checkShown looks for secrets in what the operator writes for people.
func (s *soak) checkShown(t testing.TB) {
	t.Helper()
	errOut := &unstructured.Unstructured{}
	errOut.SetAPIVersion(status.Group + "/" + status.Version)
	errOut.SetKind(status.Kind)
	s.try(t, "the status", func() error {
		return client.IgnoreNotFound(s.Get(s.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: status.Name}, errOut))
	})
	text, err := json.Marshal(errOut.Object)
	must(t, err)
	s.observer.SearchText("the status of the operator", string(text))
	var configs corev1.ConfigMapList
	s.try(t, "ConfigMaps", func() error { return s.List(s.ctx, &configs, client.InNamespace(gather.OperatorNamespace)) })
	for _, c := range configs.Items {
		s.observer.SearchText("ConfigMap "+c.Name, fmt.Sprint(c.Data, c.Annotations))
	}
}

// checkKept checks that what an administrator did is there.
func (s *soak) checkKept() {
	n, ok := s.observer.Snapshot()[s.cordoned]
	if s.cordoned != "" && ok && (!n.Spec.Unschedulable || observer.IsCordonedByUs(n)) {
		s.observer.Violate(ruleKept, "the cordon of %s", s.cordoned)
	}
}

// checkUsage compares what the operator uses with what it used when all nodes were first at rest in its life.
func (s *soak) checkUsage() {
	u, err := s.operator.usage()
	if err != nil {
		s.observer.Violate(ruleEnds, "%v: %s", err, s.lastLine())
		return
	}
	s.usages = append(s.usages, u)
	if s.baseline == nil || !s.options.boundsUsage {
		s.baseline = &u
		return
	}
	if most := s.baseline.goroutines + moreGoroutines; u.goroutines > most {
		s.observer.Violate(ruleGoroutines, "%d goroutines at rest, %d before", u.goroutines, s.baseline.goroutines)
	}
	if most := s.baseline.heap + uint64(moreHeapShare*float64(s.baseline.heap)) + moreHeap; u.heap > most {
		s.observer.Violate(ruleMemory, "%d MiB at rest, %d MiB before", u.heap>>20, s.baseline.heap>>20)
	}
}
