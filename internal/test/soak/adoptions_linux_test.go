package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/existing"
	"wmco/internal/test/simnode/light"
	"wmco/internal/test/simnode/overlay"
)

// Some new nodes are instances that the existing operator has joined. Each has an SSH server in front of a host in a folder. The operator compares the host
// over SSH, gives the node a turn of the rollout, and replaces the agent; it is killed once in between. Then the node is one like all others, and the rest of
// the storm happens to it too.
//
//	host in a folder, as the existing operator leaves it --annotation adopt--> record, plan --turn--> bundle over SSH, own agent --> light node on this folder
//	                                                        `---------- an operator is killed at one of these moments ----------'

// adoptingMost is how many nodes are adopted at the same time, at most, and adoptedMost how many nodes have an SSH server.
const adoptingMost, adoptedMost = 3, 8

// adopting is a node that is being adopted.
type adopting struct {
	*machine
	existing existing.Furnishing
	// before are how often services were started; planned is what the adoption to bundle restarts.
	before  map[string]int
	planned map[string]bool
	bundle  bundle.Digest
	// moment is when an operator is killed; killed is true when it was.
	moment int
	killed bool
	// stopBeats ends the reports of the kubelet.
	stopBeats func()
}

// onFolder is a host in a folder for a light node: a boot is only asked for.
type onFolder struct {
	*simulation.Host
	folder interface {
		Lock(ctx context.Context, owner string) (func() error, error)
	}
}

// Lock implements applier.Host.
func (h onFolder) Lock(ctx context.Context, owner string) (func() error, error) {
	return h.folder.Lock(ctx, owner)
}

// adoptNode adds a node of the existing operator, and asks for its adoption. It reports whether it did.
func (s *soak) adoptNode(t *testing.T) bool {
	reachedNodes := s.named(func(m *machine) bool { return m.reached != nil })
	if len(s.adopting) >= adoptingMost || len(s.adopting)+len(reachedNodes) >= adoptedMost {
		return false
	}
	generations := existing.Generations()
	f, err := existing.Of(generations[s.random.IntN(len(generations))].Name)
	must(t, err)
	node, facts := s.newNode(s.made)
	s.made++
	a := &adopting{machine: &machine{name: node.Name, entry: facts.Addresses[0], facts: facts, reached: s.serve(t, facts)}, existing: f, moment: s.adoptions % moments}
	s.adoptions++
	o := s.lightOptions(t, node.Name, facts)
	o.Host = onFolder{a.reached.host.Host, a.reached.host}
	a.Node, err = light.New(s.ctx, o)
	must(t, err)
	must(t, a.annotate(node))
	s.observer.followBundles(node.Name)
	s.try(t, "a Node of the existing operator", func() error { return s.Create(s.ctx, node) })
	must(t, s.setReady(node.Name, corev1.ConditionTrue))
	s.adopting[node.Name] = a
	s.writeInstances(t)
	s.try(t, "the host of the existing operator", func() error { return s.furnish(a, node) })
	must(t, s.addresses.add(a.entry, a.reached.server.Address))
	beats, stop := context.WithCancel(s.ctx)
	a.stopBeats = stop
	go s.beat(beats, a.name)
	s.edit(t, a.name, `{"metadata":{"annotations":{"`+published.AdoptAnnotation+`":"`+published.AdoptTrue+`"}}}`)
	return true
}

// annotate leaves the annotations of the existing operator on a Node.
func (a *adopting) annotate(node *corev1.Node) error {
	key, err := a.reached.hostKey()
	if err != nil {
		return err
	}
	kept := map[string]string{}
	for _, x := range a.existing.Annotations {
		kept[x.Name] = node.Annotations[x.Name]
	}
	maps.DeleteFunc(node.Annotations, func(name, _ string) bool { return strings.HasPrefix(name, published.Domain) })
	maps.Copy(node.Annotations, kept)
	node.Annotations[published.VersionAnnotation], node.Annotations[published.DesiredVersionAnnotation] = a.existing.Version, a.existing.Version
	if _, pinned := kept[hosts.PinAnnotation]; pinned {
		node.Annotations[hosts.PinAnnotation], node.Annotations[hosts.PinTypeAnnotation] = hosts.EncodeKey(key), key.Type()
	}
	return nil
}

// hostKey asks the SSH server for its key.
func (l *reached) hostKey() (ssh.PublicKey, error) {
	var shown ssh.PublicKey
	_, err := ssh.Dial("tcp", l.server.Address, &ssh.ClientConfig{HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
		shown = key
		return errors.New("that is all")
	}})
	if shown == nil {
		return nil, err
	}
	return shown, nil
}

// furnish gives the host its bundle, and then what the existing operator has instead of it. It can be called again.
func (s *soak) furnish(a *adopting, node *corev1.Node) error {
	request, err := s.renderUnadopted(s.ctx, a, node.UID)
	if err != nil {
		return err
	}
	h := a.reached.host
	if err := a.reached.apply(s.ctx, hostsim.NewClock(time.Now()), request); err != nil {
		return err
	}
	if err := h.StopService(s.ctx, bundle.AgentService); err != nil {
		return err
	}
	all, err := h.Snapshot(s.ctx)
	if err != nil {
		return err
	}
	absent := map[string]bool{}
	for _, x := range a.existing.Absent {
		absent[bundle.FoldPath(x.Name)] = true
	}
	for path, file := range all.Files {
		p := bundle.FoldPath(path)
		own := strings.HasPrefix(p, bundle.FoldPath(plan.StateFolder)+`\`) || strings.HasPrefix(p, `c:\windows\wmco\`) || strings.HasSuffix(p, bundle.LedgerCopy)
		if file.Kind == plan.FileRegular && (own || absent[p]) {
			if err := h.RemoveFile(path); err != nil {
				return err
			}
		}
	}
	for _, x := range a.existing.Files {
		if err := h.WriteFile(s.ctx, x.Name, bundle.AccessUsers, []byte(x.Text)); err != nil {
			return err
		}
	}
	if a.moment%2 == 1 {
		if err := h.WriteFile(s.ctx, olderContainerd, bundle.AccessUsers, []byte("containerd 1.7")); err != nil {
			return err
		}
	}
	err = h.Edit(s.ctx, func(state *simulation.State) { a.furnishServices(state, node) })
	if err == nil {
		err = h.StartService(s.ctx, bundle.AgentService)
	}
	if err != nil {
		return err
	}
	seen, err := a.Observe(s.ctx, request)
	if err != nil {
		return err
	}
	a.planned, a.bundle = map[string]bool{}, request.Manifest.Digest
	for _, name := range seen.Restarts {
		a.planned[simulation.Key(name)] = true
	}
	a.before, err = a.starts(s.ctx)
	return err
}

// furnishServices leaves the commands of the existing operator, which gives no service variables of its own, and one of the variables of the machine.
func (a *adopting) furnishServices(state *simulation.State, node *corev1.Node) {
	values := strings.NewReplacer("NODE_NAME", node.Name, "NODE_SUBNET", node.Annotations[overlay.SubnetAnnotation], "ENDPOINT_IP", a.facts.Endpoints[0].IP)
	for key, service := range state.Services {
		if command := a.existing.Command(service.Name); command != "" {
			service.CommandLine = values.Replace(command)
		}
		service.Environment = nil
		state.Services[key] = service
	}
	state.Put(plan.Setting{Kind: bundle.KindVariable, Name: existingVariable, Value: ".existing.example.com", Present: true})
}

// olderContainerd is on every second host that is adopted: another one is copied there, and the node is drained for it.
const olderContainerd = `C:\k\containerd\containerd.exe`

// existingVariable is one of those that the existing operator sets on the machine. They stay.
const existingVariable = "NO_PROXY"

// existingLeaves are the paths and settings of the existing operator that stay on the host of an adopted node when it is removed.
func existingLeaves() map[string]bool {
	stays := map[string]bool{simulation.SettingKey(bundle.KindVariable, existingVariable): true}
	for _, g := range existing.Generations() {
		if f, err := existing.Of(g.Name); err == nil {
			for _, x := range f.Files {
				stays[bundle.FoldPath(x.Name)] = true
			}
		}
	}
	return stays
}

// starts returns how often each service was started.
func (a *adopting) starts(ctx context.Context) (map[string]int, error) {
	all := map[string]int{}
	err := a.reached.host.Look(ctx, func(state *simulation.State) {
		for key, service := range state.Services {
			all[key] = service.Starts
		}
	})
	return all, err
}

// hasOwnAgent reports whether the service of the agent runs that of this operator.
func (a *adopting) hasOwnAgent(ctx context.Context) (bool, error) {
	own := false
	err := a.reached.host.Look(ctx, func(state *simulation.State) {
		service := state.Services[simulation.Key(bundle.AgentService)]
		own = service.Status == plan.ServiceRunning && len(service.Argv) > 1 && service.Argv[1] == "run"
	})
	return own, err
}

// beat is the kubelet of a node: it reports again and again.
func (s *soak) beat(ctx context.Context, name string) {
	for ; ctx.Err() == nil; pause(ctx, 2*time.Second) {
		_ = s.setReady(name, corev1.ConditionTrue) // again, if it does not work
	}
}

// The moments of an adoption at which an operator is killed.
const (
	momentRecorded = iota
	momentPlanned
	momentPublished
	momentChanged
	moments
)

// followAdoptions starts the node agents of hosts that have one now, and kills an operator at its moment.
func (s *soak) followAdoptions(t testing.TB) {
	t.Helper()
	nodes := s.observer.snapshot()
	for _, name := range slices.Sorted(maps.Keys(s.adopting)) {
		a := s.adopting[name]
		r, err := s.recordOf(a.entry)
		if err != nil {
			continue // the API server is not well
		}
		own, err := a.hasOwnAgent(s.ctx)
		must(t, err)
		switch {
		case own && a.stop == nil:
			s.start(t, a.machine)
		case !own && a.stop != nil: // it was rolled back
			a.stop()
			a.stop = nil
		}
		n := nodes[name]
		reachedMoment := []bool{
			momentRecorded:  r.Adopting,
			momentPlanned:   r.Adopting && n.Annotations[published.ReportAnnotation] != "",
			momentPublished: r.Adopting && n.Annotations[published.DesiredAnnotation] != "",
			momentChanged:   r.Adopting && own,
		}
		if s.mayKill && !a.killed && reachedMoment[a.moment] {
			a.killed = true
			s.faults[faultKilledAdopting]++
			s.operator.kill()
			s.live(t)
		}
		if own && r.Node == name && r.Origin == record.OriginAdopted && !r.Adopting {
			s.finishAdoption(t, a)
		}
	}
}

const faultKilledAdopting = "operator killed while it adopts"

// recordOf returns the record of an instance.
func (s *soak) recordOf(entry string) (record.Record, error) {
	records := &hosts.Records{Live: s, Client: s, Cache: s, Namespace: operatorNamespace}
	r, _, err := records.GetRecord(s.ctx, record.OfEntry(entry))
	return r, err
}

// finishAdoption is for a node that is adopted: it is one like all others.
func (s *soak) finishAdoption(t testing.TB, a *adopting) {
	t.Helper()
	a.stopBeats()
	after, err := a.starts(s.ctx)
	must(t, err)
	for _, text := range a.restartsTooMuch(after, s.observer.bundlesOf(a.name)) {
		s.observer.violate(ruleAdopted, "%s of the existing operator %s: %s", a.name, a.existing.Name, text)
	}
	s.mu.Lock()
	s.machines[a.name] = a.machine
	s.mu.Unlock()
	delete(s.adopting, a.name)
	s.adopted++
}

// restartsTooMuch says which services were started more often than the adoption needs: once where its plan says so. Where other bundles were published
// in between, their plans are not known, and each service may have been started once for each.
func (a *adopting) restartsTooMuch(after map[string]int, bundles map[bundle.Digest]bool) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		most := max(1, len(bundles))
		if len(bundles) == 1 && bundles[a.bundle] && !a.planned[name] && name != simulation.Key(bundle.AgentService) {
			most = 0
		}
		if n := after[name] - a.before[name]; n > most {
			list = append(list, fmt.Sprintf("service %s was started %d times, and %d are needed for %d bundles", name, n, most, len(bundles)))
		}
	}
	return list
}

// adoptingUnrest returns why adoptions are not done; empty if they are.
func (s *soak) adoptingUnrest() string {
	nodes := s.observer.snapshot()
	for _, name := range slices.Sorted(maps.Keys(s.adopting)) {
		r, err := s.recordOf(s.adopting[name].entry)
		text, unwritten := json.Marshal(r)
		return fmt.Sprintf("the adoption is not done, with the record %s (%v): %s", text, errors.Join(err, unwritten), describe(name, nodes[name]))
	}
	return ""
}

// followBundles notes from now on which bundles are published for a node.
func (o *observer) followBundles(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bundles[node] = map[bundle.Digest]bool{}
}

// bundlesOf returns them, and ends that.
func (o *observer) bundlesOf(node string) map[bundle.Digest]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.bundles[node]
	delete(o.bundles, node)
	return all
}

// enterPublished notes what is published for a node that is being adopted.
func (o *observer) enterPublished(n corev1.Node) {
	if d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation]); err == nil && o.bundles[n.Name] != nil {
		o.bundles[n.Name][d.Bundle] = true
	}
	if r, err := published.DecodeReport(n.Annotations[published.ReportAnnotation]); err == nil && r.Adopting && r.State == published.StateRolledBack {
		o.note(ruleBack, "%s: %s", n.Name, r.Message)
	}
}
