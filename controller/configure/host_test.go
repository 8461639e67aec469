package configure

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys"
	"wmco/preflight"
	"wmco/render"
)

// TestWhatAHostWaitsFor before it is reached, and the message about one that cannot be.
func TestWhatAHostWaitsFor(t *testing.T) {
	unusable := func(skipped bool, why string) func(*scene) {
		return func(s *scene) {
			s.inputs.Instances[0].Skipped = skipped
			s.inputs.Instances[0].Finding = bundle.Finding{Reason: why, Message: "the entry is wrong", Fix: "correct it"}
		}
	}
	for name, tt := range map[string]struct {
		scene func(*scene)
		ref   Ref
		want  string
	}{
		"it is not in the inputs":   {func(*scene) {}, Ref{Address: "192.0.2.1"}, "Gone : "},
		"its Machine is not":        {func(*scene) {}, Ref{Machine: "m"}, "Gone : "},
		"a Machine has the address": {func(s *scene) { s.onlyMachine("m") }, Ref{Address: hostA}, "Gone : "},
		"its entry cannot be used": {
			unusable(true, reason.InstanceInvalid), Ref{Address: hostA}, "Waiting InstanceInvalid: the entry is wrong; fix: correct it",
		},
		"its name is not resolved": {
			unusable(false, reason.InstanceUnresolvable), Ref{Address: hostA}, "Waiting InstanceUnresolvable: the entry is wrong; fix: correct it",
		},
		"its entry has a warning": {unusable(false, reason.InstanceAmbiguous), Ref{Address: hostA}, registering},
		"its entry stands for none": {
			func(s *scene) { unusable(true, reason.InstanceInvalid)(s); s.inputs.All = nil }, Ref{Address: hostA},
			"Waiting InstanceInvalid: the entry is wrong; fix: correct it",
		},
		"its name is not resolved, and it is a node": {
			func(s *scene) {
				s.isNode(annotated(VersionAnnotation, "10"))
				unusable(false, reason.InstanceUnresolvable)(s)
			}, Ref{Address: hostA}, "Joined Joined: ",
		},
		"its Node is not in the cache": {func(s *scene) { s.host(hostA).Name = "win-a" }, Ref{Address: hostA}, " : "},
		"the operator has no key": {
			func(s *scene) {
				must(s.t, s.client.Delete(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}}))
			}, Ref{Address: hostA},
			"Waiting PrivateKeyMissing: no host joins now: Secret/operator/cloud-private-key: the Secret with the private key does not exist; " +
				"fix: create the Secret with a key without a passphrase: ssh-keygen -t ed25519 -N '' -f key; " +
				"oc create secret generic cloud-private-key --from-file=private-key.pem=key -n operator",
		},
		"it is off": {
			func(s *scene) { delete(s.network.at, hostA) }, Ref{Address: hostA},
			refused(ReasonUnreachable, "connecting to Administrator@10.0.140.21: connection refused",
				"check the address, that the host is running, and that its firewall allows TCP port 22"),
		},
		"another operator works on it": {
			func(s *scene) {
				s.network.at[hostA].result = protocol.Event{Result: protocol.ResultRefused, LockedBy: "wmco apply, process 7"}
			}, Ref{Address: hostA},
			"Waiting OtherRun: another run is changing the host: wmco apply, process 7; " +
				"fix: wait for its end, after which the host is retried; if it does not end, end its process on the host",
		},
		"it cannot be rendered": {
			func(s *scene) { s.network.at[hostA].facts.DNSSuffix = "a b" }, Ref{Address: hostA},
			`Waiting FactsInvalid: "a b" is not a DNS name; fix: if you edited the file of --facts, write it again with wmco-node facts; otherwise correct the value on the host`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tt.scene(s)
			p, err := s.joiner.JoinHost(t.Context(), tt.ref)
			must(t, err)
			if diff := cmp.Diff(tt.want, described(p)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if failed := p.State == StateFailed; failed != (len(s.counted.failures) == 1) {
				t.Errorf("counted %v", s.counted.failures)
			}
			if text := s.joiner.Unjoined.joiningText(hostA); text != "the host is joining" {
				t.Errorf("its step is still %q", text)
			}
		})
	}
}

// TestInputsThatCannotBeReadAreAnError, and no state of a host.
func TestInputsThatCannotBeReadAreAnError(t *testing.T) {
	for _, what := range []string{"inputs", "version", "get " + keys.SecretName} {
		s := newScene(t)
		s.fails[what] = errAPIServer
		if p, err := s.joiner.JoinHost(t.Context(), Ref{Address: hostA}); !errors.Is(err, errAPIServer) || described(p) != " : " {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
		if len(s.network.at[hostA].did) > 0 {
			t.Errorf("%s: the host was changed", what)
		}
	}
}

// TestWhatTheEndOfARunMeans for the host.
func TestWhatTheEndOfARunMeans(t *testing.T) {
	const disk = "free space on drive C: of the host, or extend the disk; the operator retries"
	pending := []bundle.EntryID{"feature Containers"}
	for name, tt := range map[string]struct {
		end  protocol.Event
		node string
		want string
		// again is when it is retried.
		again time.Duration
	}{
		"applied":  {protocol.Event{Result: protocol.ResultApplied}, "", registering, AgainSoon},
		"the same": {protocol.Event{Result: protocol.ResultSame}, "", registering, AgainSoon},
		"applied, and it is a node": {
			protocol.Event{Result: protocol.ResultApplied}, "win-a",
			"Joining Completing: waiting for the first report of the node agent", AgainSoon,
		},
		"applied with the next boot": {
			protocol.Event{Result: protocol.ResultApplied, RebootPending: pending}, "", "Joining Rebooting: the host reboots", AgainSoon,
		},
		"a boot": {
			protocol.Event{Result: protocol.ResultReboot}, "", "Joining Rebooting: host is rebooting; configuration continues after the reboot", AgainSoon,
		},
		"rolled back": {
			protocol.Event{Result: protocol.ResultRolledBack, Message: "kubelet does not run"}, "",
			refused(ReasonRolledBack, "the host was rolled back: kubelet does not run",
				`read the log of the service under C:\var\log on the host, and fix the inputs`), AgainLater,
		},
		"in part": {
			protocol.Event{Result: protocol.ResultPartial, Message: "cut off"}, "", refused(ReasonFailed, "cut off", "it is retried"), AgainSoon,
		},
		"refused": {
			protocol.Event{Result: protocol.ResultRefused, Message: "it needs a boot"}, "",
			refused(ReasonFailed, "it needs a boot", "it is retried"), AgainSoon,
		},
		"no room": {
			protocol.Event{Result: protocol.ResultPartial, Message: "disk full", DiskFull: true}, "", refused(ReasonFailed, "disk full", disk), AgainSoon,
		},
		"handed over": {
			protocol.Event{Result: protocol.ResultHandedOver, Message: "by another process"}, "",
			refused(ReasonFailed, "by another process", "it is retried"), AgainSoon,
		},
	} {
		s := newScene(t)
		s.host(hostA).Name = tt.node
		h := s.hostAt(hostA)
		h.Wanted.All = nil
		host := s.network.at[hostA]
		host.result = tt.end
		if tt.end.Result == protocol.ResultSame {
			host.result = protocol.Event{}
			_ = h.applyHostBundle(t.Context()) // so that the second time nothing differs
		}
		if tt.node != "" {
			h.Facts, h.Subnet = host.facts, "10.132.0.0/24"
		}
		p := h.applyHostBundle(t.Context())
		if diff := cmp.Diff(tt.want, described(p)); diff != "" || p.Again != tt.again || p.Node != tt.node {
			t.Errorf("%s: node %q, again in %s, -want +got\n%s", name, p.Node, p.Again, diff)
		}
		if len(host.did) != 1 {
			t.Errorf("%s: done on the host: %v", name, host.did)
		}
	}
}

// TestAHostThatMayNotStopBeingANode: it joins again only under a name that a Node can have.
func TestAHostThatMayNotStopBeingANode(t *testing.T) {
	h := newScene(t).hostAt(hostA)
	for name, want := range map[string]string{"WIN-A": "win-a", "win_a": "", "": ""} {
		if got := h.formerNode(factsOf(name, hostA)); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestAKubeletThatRegistersNoNode is restarted if it has its certificate, and otherwise asked what it lacks. The kubelet of a host that has
// just joined has time.
func TestAKubeletThatRegistersNoNode(t *testing.T) {
	const (
		repair = "repair --max-impact restart --wait 30s --restart kubelet"
		apply  = "apply --max-impact reboot --reboot --confirm-within 2m0s --wait 30s --reset win-a"
	)
	certificate := remote.PendingKey{NotAfter: noon().Add(time.Hour)}
	for name, tt := range map[string]struct {
		host func(*computer)
		// waited is for how long it has had its bundle.
		waited time.Duration
		want   string
		did    []string
	}{
		"it has just joined": {func(c *computer) { c.pending = certificate }, registersWithin - time.Second, registering, []string{apply}},
		"it has its certificate": {
			func(c *computer) { c.pending = certificate }, registersWithin,
			"Joining WaitingForNode: the kubelet has its certificate and registered no Node within 2m0s: its service was restarted", []string{apply, repair},
		},
		"it waits for its certificate": {
			func(*computer) {}, registersWithin, registering + "; the host lacks: " +
				`APIServerUnreachable: https://api-int.demo.example.com:6443 is not reached: "the host does not say"; ` +
				"DiskNearlyFull: 0 GiB are free on drive C:; " +
				`RegistryUnreachable: the pause image is not pulled from https://mcr.microsoft.com/v2/oss/kubernetes/pause/manifests/3.9: "the host does not say"; ` +
				"fix: open the way to the API server", []string{apply},
		},
		"it does not say": {
			func(c *computer) { c.refuses = map[string]error{"pending-key": errors.New("cut off")} },
			registersWithin, "Failed JoinFailed: cut off", []string{apply},
		},
		"it is not restarted": {
			func(c *computer) {
				c.pending, c.refuses = certificate, map[string]error{"repair": errors.New("cut off")}
			}, registersWithin, "Failed JoinFailed: cut off", []string{apply},
		},
		"it does not say what it lacks": {
			func(c *computer) { c.refuses = map[string]error{"preflight": errors.New("cut off")} }, registersWithin, registering, []string{apply},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			host := s.network.at[hostA]
			host.lacks = preflight.Answer{Schema: preflight.Schema, Facts: host.facts}
			tt.host(host)
			if got := described(s.join(hostA)); got != registering {
				t.Fatal(got)
			}
			s.elapsed = tt.waited
			got := s.join(hostA)
			if diff := cmp.Diff(tt.want, described(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(tt.did, host.did); diff != "" {
				t.Errorf("done on the host, -want +got\n%s", diff)
			}
		})
	}
}

// TestARestartedKubeletHasTimeAgain to register its Node.
func TestARestartedKubeletHasTimeAgain(t *testing.T) {
	s := newScene(t)
	s.network.at[hostA].pending.NotAfter = noon().Add(time.Hour)
	for _, at := range []time.Duration{0, registersWithin, registersWithin + time.Second, 2*registersWithin + time.Second} {
		s.elapsed = at
		s.join(hostA)
	}
	if did := s.network.at[hostA].did; len(did) != 3 {
		t.Errorf("done on the host: %v", did)
	}
}

// TestABootIsNoTimeInWhichAKubeletRegistersNoNode: that counts from when the host has its bundle again.
func TestABootIsNoTimeInWhichAKubeletRegistersNoNode(t *testing.T) {
	s := newScene(t)
	host := s.network.at[hostA]
	host.pending.NotAfter = noon().Add(time.Hour)
	s.join(hostA)
	s.elapsed, host.has, host.result = time.Minute, "", protocol.Event{Result: protocol.ResultReboot}
	if p := s.join(hostA); p.Reason != ReasonRebooting {
		t.Error(described(p))
	}
	s.elapsed, host.result = registersWithin, protocol.Event{}
	if p := s.join(hostA); described(p) != registering {
		t.Error(described(p))
	}
}

// TestAHostThatHasLostItsNodeHasTimeAgain to register it.
func TestAHostThatHasLostItsNodeHasTimeAgain(t *testing.T) {
	s := newScene(t)
	s.network.at[hostA].pending.NotAfter = noon().Add(time.Hour)
	s.join(hostA)
	s.elapsed, s.host(hostA).Name = time.Minute, "win-a"
	s.join(hostA)
	s.elapsed, s.host(hostA).Name = registersWithin, ""
	if p := s.join(hostA); described(p) != registering {
		t.Error(described(p))
	}
}

// TestAHostThatFailsToJoinSaysWhatItLacks once in explainEvery, and a node never.
func TestAHostThatFailsToJoinSaysWhatItLacks(t *testing.T) {
	s := newScene(t)
	host := s.network.at[hostA]
	host.result = protocol.Event{Result: protocol.ResultRolledBack, Message: "kubelet does not run"}
	host.lacks = preflight.Answer{Schema: preflight.Schema, Facts: host.facts}
	first := s.join(hostA)
	host.refuses = map[string]error{"preflight": errors.New("asked again")}
	s.elapsed = explainEvery - time.Second
	second := s.join(hostA)
	s.elapsed = explainEvery
	third := s.join(hostA)
	plain := "the host was rolled back: kubelet does not run"
	if first.Message == plain || first.Message != second.Message || third.Message != plain {
		t.Errorf("%q, %q, %q", first.Message, second.Message, third.Message)
	}
	s = newScene(t)
	s.isNode()
	host = s.network.at[hostA]
	host.result = protocol.Event{Result: protocol.ResultRolledBack, Message: "kubelet does not run"}
	host.lacks = preflight.Answer{Schema: preflight.Schema, Facts: host.facts}
	if p := s.hostAt(hostA).applyHostBundle(t.Context()); p.Message != plain {
		t.Errorf("a node: %q", p.Message)
	}
}

// TestListedHosts are those of Machines and entries, with the Nodes that the operator knows.
func TestListedHosts(t *testing.T) {
	inputs := &desired.Hosts{
		All: []render.Node{
			{Backing: render.BackingMachine, MachineName: "m", Address: hostA, Name: "win-a"},
			{Backing: render.BackingMachine, MachineName: "claimed", Address: "10.0.140.24", Name: "win-c", Unconfirmed: true},
			{Backing: render.BackingInstance, Address: hostB, Name: "win-b"}, {Backing: render.BackingNode, Address: "10.0.140.25", Name: "win-d"},
		},
		Instances: []gather.Instance{{Address: hostB}, {Address: "bad", Skipped: true}},
	}
	want := []Listed{{"m", hostA, "win-a"}, {"claimed", "10.0.140.24", ""}, {hostB, hostB, "win-b"}, {"bad", "bad", ""}}
	if diff := cmp.Diff(want, ListHosts(inputs)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var names []string
	for _, h := range new(Unjoined).UnjoinedHostsFunc(inputs)() {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"bad", "claimed"}, names); diff != "" {
		t.Errorf("unjoined, -want +got\n%s", diff)
	}
}

func TestTheAccountOfAHost(t *testing.T) {
	for name, tt := range map[string]struct {
		node     render.Node
		platform bundle.Platform
		want     string
	}{
		"an entry":           {render.Node{Backing: render.BackingInstance, Username: "core"}, bundle.PlatformAzure, "core"},
		"a Machine":          {render.Node{Backing: render.BackingMachine}, bundle.PlatformAWS, "Administrator"},
		"a Machine on Azure": {render.Node{Backing: render.BackingMachine}, bundle.PlatformAzure, "capi"},
		"a Node alone":       {render.Node{Backing: render.BackingNode, Username: "core"}, bundle.PlatformAWS, ""},
	} {
		if got := LoginAccount(tt.node, tt.platform); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
