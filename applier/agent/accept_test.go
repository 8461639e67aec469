package agent

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// signingKey returns a key that is always the same.
func signingKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// keyFile is what a bundle brings to a host that trusts these keys.
func keyFile(t *testing.T, keys ...ed25519.PrivateKey) string {
	t.Helper()
	var list published.Keys
	for _, k := range keys {
		list = append(list, k.Public().(ed25519.PublicKey))
	}
	text, err := list.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// signing is an operator that publishes for the node of a world.
type signing struct {
	*world
	keys     []ed25519.PrivateKey
	sequence int64
	// change is made to the signed state.
	change func(*published.Desired)
}

// publishSigned publishes the bundle as it is now, signed, and returns the text.
func (s *signing) publishSigned(allowed bundle.Impact) string {
	s.t.Helper()
	d := s.publish(allowed)
	s.sequence++
	d.NodeName, d.Term, d.Sequence = fakeNode, 100, s.sequence
	if s.change != nil {
		s.change(&d)
	}
	text, err := d.Sign(s.keys)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cluster.node.Desired = text
	return text
}

// withKeys is a world whose host has the keys of an operator.
func withKeys(t *testing.T, keys ...ed25519.PrivateKey) *signing {
	t.Helper()
	return newWorld(t).withKeys(t, keys...)
}

func (w *world) withKeys(t *testing.T, keys ...ed25519.PrivateKey) *signing {
	t.Helper()
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) {
		n.Files[bundle.SigningKeysFile], n.NodeName = keyFile(t, keys...), fakeNode
	})
	s := &signing{world: w, keys: keys}
	s.publishSigned(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.publishSigned(bundle.ImpactRestart) // the first one that is verified
	if got := w.turn(); got.State != published.StateApplied || got.Refused != "" {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	w.cluster.events, w.cluster.reports = nil, nil
	return s
}

// refused fails unless the agent refuses the published state, reports why once, and changes nothing.
func (s *signing) refused(t *testing.T, why string) {
	t.Helper()
	conf := s.file(kubeletConf)
	s.host.ClearLog()
	s.cluster.events = nil
	got := s.turn()
	s.turn()
	switch {
	case got.State != published.StateFailed || !strings.Contains(got.Message, why) || !strings.Contains(got.Message, "fix: "):
		t.Fatalf("%s: %q, want %q", got.State, got.Message, why)
	case got.Refused != bundle.Of([]byte(s.cluster.node.Desired)):
		t.Errorf("refused is %s", got.Refused)
	case got.Applied == "" || len(got.Layers) != 2:
		t.Errorf("what the host has is not reported: %+v", got)
	case s.file(kubeletConf) != conf || len(s.changes()) > 0:
		t.Errorf("the host was changed: %v", s.changes())
	case len(s.cluster.events) != 1 || s.cluster.events[0].Reason != EventRefused || !s.cluster.events[0].Warning:
		t.Errorf("events %+v", s.cluster.events)
	case s.follower.retryAt != 0:
		t.Error("it is retried")
	}
}

// changes are those of the host since its log was cleared, apart from records.
func (s *signing) changes() []simulation.Operation {
	return slices.DeleteFunc(s.host.Log(), func(op simulation.Operation) bool { return strings.HasPrefix(op.Target, plan.StateFolder) })
}

// evil changes the bundle to one that a right to patch the Node must not bring to a host.
func (s *signing) evil() { s.world.change(kubeletConf, "evil\n") }

func TestWhatIsNotSignedForTheNodeIsRefused(t *testing.T) {
	key := signingKey(1)
	for name, tt := range map[string]struct {
		publish func(*signing)
		why     string
	}{
		"not signed":              {func(s *signing) { s.publish(bundle.ImpactReboot) }, "it is not signed"},
		"urgent and not signed":   {func(s *signing) { s.publish(bundle.ImpactReboot); s.publishUrgent() }, "it is not signed"},
		"signed with another key": {func(s *signing) { s.keys = []ed25519.PrivateKey{signingKey(9)}; s.publishSigned(bundle.ImpactReboot) }, "by a key that is trusted"},
		"signed for another node": {func(s *signing) {
			s.change = func(d *published.Desired) { d.NodeName = "win-b" }
			s.publishSigned(bundle.ImpactReboot)
		}, "for node win-b, and this is node win-a"},
		"signed for no node": {func(s *signing) {
			s.change = func(d *published.Desired) { d.NodeName = "" }
			s.publishSigned(bundle.ImpactReboot)
		}, "not signed for any node"},
		"signed for an earlier Node of this name": {func(s *signing) {
			s.change = func(d *published.Desired) { d.NodeUID = "of-before" }
			s.publishSigned(bundle.ImpactReboot)
		}, "signed for an earlier Node of this name"},
		"of an older term": {func(s *signing) {
			s.change = func(d *published.Desired) { d.Term = 99; d.Sequence = 1000 }
			s.publishSigned(bundle.ImpactReboot)
		}, "is older than"},
		"of an older sequence": {func(s *signing) {
			s.change = func(d *published.Desired) { d.Sequence = 1 }
			s.publishSigned(bundle.ImpactReboot)
		}, "is older than"},
		"another one of the same number": {func(s *signing) {
			s.change = func(d *published.Desired) { d.Sequence-- }
			s.publishSigned(bundle.ImpactReboot)
		}, "has the counter 100.2 of another"},
		"changed after it was signed": {func(s *signing) {
			s.cluster.node.Desired = strings.Replace(s.publishSigned(bundle.ImpactRestart), `"maxImpact":"restart"`, `"maxImpact":"reboot"`, 1)
		}, "by a key that is trusted"},
		"a layer of another node": {func(s *signing) {
			s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.NodeName = "win-b" })
			s.publishSigned(bundle.ImpactReboot)
		}, "for node win-b, and this is node win-a"},
	} {
		for _, paused := range []bool{false, true} {
			if paused && !strings.HasPrefix(name, "urgent") {
				continue // an agent leaves a paused node as it is, whatever is published
			}
			t.Run(name, func(t *testing.T) {
				s := withKeys(t, key)
				s.evil()
				tt.publish(s)
				s.cluster.node.Paused = paused
				s.refused(t, tt.why)
				s.restart() // another process of the agent
				s.refused(t, tt.why)
				// The operator writes the right one again.
				s.keys, s.change, s.sequence, s.cluster.node.Paused = []ed25519.PrivateKey{key}, nil, s.sequence+10, false
				s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.NodeName, n.Files[kubeletConf] = fakeNode, "kind: KubeletConfiguration\n" })
				s.publishSigned(bundle.ImpactRestart)
				if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
					t.Errorf("%s: %s", got.State, got.Message)
				}
			})
		}
	}
}

// TestAnEarlierAnnotationIsRefusedByALaterProcess: what was accepted is recorded on the host, before anything is done.
func TestAnEarlierAnnotationIsRefusedByALaterProcess(t *testing.T) {
	s := withKeys(t, signingKey(1))
	earlier := s.publishSigned(bundle.ImpactReboot)
	s.turn()
	s.world.change(kubeletConf, "newer\n")
	s.publishSigned(bundle.ImpactRestart)
	s.turn()
	for range 2 {
		s.restart()
		s.cluster.node.Desired = earlier
		s.refused(t, "is older than")
	}
	if err := s.host.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.refused(t, "is older than")
}

// TestWhatWasSignedBeforeARemovalIsRefusedAfterIt: a cleanup removes the record of what was accepted, so the UID of the Node alone shows that an
// annotation is of before.
func TestWhatWasSignedBeforeARemovalIsRefusedAfterIt(t *testing.T) {
	s := withKeys(t, signingKey(1))
	s.cluster.node.UID = "first"
	s.change = func(d *published.Desired) { d.NodeUID = "first" }
	s.world.change(kubeletConf, "of the first Node\n")
	earlier := s.publishSigned(bundle.ImpactReboot)
	if got := s.turn(); got.State != published.StateApplied {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	if err := s.host.Remove(t.Context(), records.FileAccepted); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.cluster.node.UID, s.cluster.node.Desired = "second", earlier
	s.refused(t, "signed for an earlier Node of this name")
	s.change = func(d *published.Desired) { d.NodeUID = "second" }
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}

func TestTheSameAnnotationIsAcceptedAgain(t *testing.T) {
	s := withKeys(t, signingKey(1))
	s.world.change(mirrors, "server = \"https://mirror\"\n")
	s.publishSigned(bundle.ImpactRestart)
	for range 3 {
		if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
			t.Fatalf("%s: %s", got.State, got.Message)
		}
		s.restart()
	}
}

// TestAHostWithoutKeysAcceptsWhatAnOlderOperatorPublishes: until a bundle brings keys.
func TestAHostWithoutKeysAcceptsWhatAnOlderOperatorPublishes(t *testing.T) {
	w := newWorld(t)
	w.change(mirrors, "server = \"https://mirror\"\n")
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || !got.Has(published.FeatureSigned) {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s := &signing{world: w, keys: []ed25519.PrivateKey{signingKey(1)}}
	s.change = func(d *published.Desired) { d.NodeName = "win-b" } // this much it can tell without keys
	s.evil()
	s.publishSigned(bundle.ImpactRestart)
	s.refused(t, "for node win-b")
	s.change = nil
	s.bundle = s.bundle.Changed(func(n *bundletest.Node) {
		n.Files[bundle.SigningKeysFile], n.Files[kubeletConf] = keyFile(t, s.keys...), "kind: KubeletConfiguration\n"
	})
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.evil()
	s.publish(bundle.ImpactRestart)
	s.refused(t, "it is not signed")
}

func TestKeysAreRotated(t *testing.T) {
	first, second := signingKey(1), signingKey(2)
	s := withKeys(t, first)
	bring := func(signs []ed25519.PrivateKey, trusts ...ed25519.PrivateKey) published.Report {
		s.keys = signs
		s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.Files[bundle.SigningKeysFile] = keyFile(t, trusts...) })
		s.publishSigned(bundle.ImpactRestart)
		return s.turn()
	}
	if got := bring([]ed25519.PrivateKey{second}, second); got.Refused == "" {
		t.Error("a key that was never announced is accepted")
	}
	for name, got := range map[string]published.Report{"both sign": bring([]ed25519.PrivateKey{first, second}, first, second), "the new one alone": bring([]ed25519.PrivateKey{second}, second)} {
		if got.State != published.StateApplied || got.Refused != "" {
			t.Errorf("%s: %s: %s", name, got.State, got.Message)
		}
	}
	s.keys = []ed25519.PrivateKey{first}
	s.evil()
	s.publishSigned(bundle.ImpactRestart)
	s.refused(t, "by a key that is trusted")
}

// TestACounterEndsWithItsKeys: an operator has lost its keys, and brings others over SSH. Its clock is behind that of the operator before.
func TestACounterEndsWithItsKeys(t *testing.T) {
	lost, other := signingKey(1), signingKey(2)
	s := withKeys(t, lost)
	ofLost := s.publishSigned(bundle.ImpactReboot)
	s.turn()
	bringOverSSH := func(keys ...ed25519.PrivateKey) {
		t.Helper()
		infos, err := s.host.Stat(t.Context(), []string{bundle.SigningKeysFile})
		if err == nil {
			err = s.host.WriteFile(t.Context(), bundle.SigningKeysFile, infos[0].Access, []byte(keyFile(t, keys...)))
		}
		if err != nil {
			t.Fatal(err)
		}
		s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.Files[bundle.SigningKeysFile] = keyFile(t, keys...) })
	}
	s.keys, s.change = []ed25519.PrivateKey{other}, func(d *published.Desired) { d.Term = 50 }
	bringOverSSH(lost, other)
	s.publishSigned(bundle.ImpactRestart)
	s.refused(t, "is older than") // the key of the counter is still trusted
	bringOverSSH(other)
	ofOther := s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.world.change(kubeletConf, "newer\n")
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.restart()
	s.cluster.node.Desired = ofOther
	s.refused(t, "is older than")
	s.cluster.node.Desired = ofLost
	s.refused(t, "by a key that is trusted")
}

// TestACounterBelongsToAllKeysThatSignedIt: a host learns later that its key of then has signed what it accepted, too. When the other key goes, the
// counter stays.
func TestACounterBelongsToAllKeysThatSignedIt(t *testing.T) {
	first, second := signingKey(1), signingKey(2)
	s := withKeys(t, first)
	s.keys = []ed25519.PrivateKey{first, second}
	earlier := s.publishSigned(bundle.ImpactRestart)
	s.turn()
	s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.Files[bundle.SigningKeysFile] = keyFile(t, first, second) })
	s.publishSigned(bundle.ImpactRestart) // accepted by the first key, and brings the second one
	s.turn()
	s.restart()
	s.turn()
	s.host.Place(bundle.SigningKeysFile, bundle.AccessAdmins, keyFile(t, second)) // over SSH
	s.restart()
	s.Options.ReportOnly = true
	s.cluster.node.Desired = earlier
	s.refused(t, "is older than")
}

// TestKeysThatOthersCanChangeAreNotTrusted: nothing is accepted then, not even unsigned state.
func TestKeysThatOthersCanChangeAreNotTrusted(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *signing){
		"others may write": func(t *testing.T, s *signing) {
			s.host.Place(bundle.SigningKeysFile, bundle.AccessUsers, keyFile(t, signingKey(9)))
		},
		"no keys": func(_ *testing.T, s *signing) { s.host.Place(bundle.SigningKeysFile, bundle.AccessAdmins, "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := withKeys(t, signingKey(1))
			spoil(t, s)
			s.keys = []ed25519.PrivateKey{signingKey(9)}
			s.evil()
			s.publishSigned(bundle.ImpactRestart)
			s.Options.ReportOnly = true // the repair would restore the file
			if got := s.turn(); got.Refused == "" || s.file(kubeletConf) == "evil\n" {
				t.Errorf("%s: %s", got.State, got.Message)
			}
			s.publish(bundle.ImpactRestart)
			if got := s.turn(); got.Refused == "" || s.file(kubeletConf) == "evil\n" {
				t.Errorf("%s: %s", got.State, got.Message)
			}
		})
	}
}

// TestAHostThatHasLostItsKeysAcceptsNothing: the bundle that it has brings keys, so unsigned state was not written by an older operator.
func TestAHostThatHasLostItsKeysAcceptsNothing(t *testing.T) {
	s := withKeys(t, signingKey(1))
	if err := s.host.Remove(t.Context(), bundle.SigningKeysFile); err != nil {
		t.Fatal(err)
	}
	s.evil()
	s.publish(bundle.ImpactReboot)
	s.Options.ReportOnly = true // the repair would restore the file
	s.refused(t, "is missing")
	s.restart()
	s.Options.ReportOnly = false
	s.bundle = s.bundle.Changed(func(n *bundletest.Node) { n.Files[kubeletConf] = "kind: KubeletConfiguration\n" })
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || got.Refused != "" || s.file(bundle.SigningKeysFile) == "" {
		t.Errorf("after the repair: %s: %s", got.State, got.Message)
	}
	// An administrator applies a bundle without keys: the host is one that an older operator may have joined.
	s.bundle = s.bundle.Changed(func(n *bundletest.Node) { delete(n.Files, bundle.SigningKeysFile) })
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || s.file(bundle.SigningKeysFile) != "" {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.publish(bundle.ImpactRestart)
	if got := s.turn(); got.State != published.StateApplied || got.Refused != "" {
		t.Errorf("without keys in the bundle: %s: %s", got.State, got.Message)
	}
}

// TestARefusedAnnotationIsLookedAtAgainAfterARepair: which restores the keys.
func TestARefusedAnnotationIsLookedAtAgainAfterARepair(t *testing.T) {
	s := withKeys(t, signingKey(1))
	s.host.Place(bundle.SigningKeysFile, bundle.AccessAdmins, "damaged")
	s.world.change(mirrors, "server = \"https://mirror\"\n")
	s.publishSigned(bundle.ImpactRestart)
	if got := s.turn(); got.Refused == "" {
		t.Fatalf("%s: %s", got.State, got.Message)
	}
	s.clock.Pass(s.Options.Interval + time.Second)
	if got := s.turn(); got.State != published.StateApplied || s.file(mirrors) != "server = \"https://mirror\"\n" {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}

// permitted is a host that may drain and boot for half an hour, and cannot begin because the API server is away.
func permitted(t *testing.T) *signing {
	t.Helper()
	s := withKeys(t, signingKey(1))
	s.change = func(d *published.Desired) { d.PermitFor = 1800 }
	s.needsDrain()
	s.cluster.away = errors.New("away")
	s.publishSigned(bundle.ImpactReboot)
	s.setNode(s.cluster.node, s.changed)
	if err := s.runDueWork(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAPermissionIsNotBegunLater: an annotation that permits a boot and was put back, or waited on a paused node, permits none hours later.
func TestAPermissionIsNotBegunLater(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, *signing){
		"the same process": func(_ *testing.T, s *signing) { s.clock.Pass(31 * time.Minute) },
		"another process":  func(_ *testing.T, s *signing) { s.clock.Pass(31 * time.Minute); s.restart() },
		"after a boot": func(_ *testing.T, s *signing) {
			s.clock.Pass(31 * time.Minute)
			s.boot()
			s.restart()
		},
		"after a boot with the clock set back": func(_ *testing.T, s *signing) {
			s.clock.Jump(-time.Hour)
			s.boot()
			s.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := permitted(t)
			wait(t, s)
			s.cluster.away = nil
			conf := s.file(kubeletConf)
			got := s.turn()
			if got.State != published.StateNeedsPermission || got.Impact != bundle.ImpactDrain || !got.Expired || s.file(kubeletConf) != conf {
				t.Fatalf("%s %s, expired %t: %s", got.State, got.Impact, got.Expired, got.Message)
			}
			s.publishSigned(bundle.ImpactReboot) // given again
			if got := s.turn(); got.State != published.StateApplied || got.Expired {
				t.Errorf("%s, expired %t: %s", got.State, got.Expired, got.Message)
			}
		})
	}
}

// needsDrain changes the bundle so that it needs a permission to drain.
func (s *signing) needsDrain() {
	s.bundle = s.bundle.Changed(func(n *bundletest.Node) {
		n.Files[kubeletConf], n.Impacts = "drains\n", map[string]bundle.Impact{kubeletConf: bundle.ImpactDrain}
	})
}

func TestWhatWasAcceptedOutlivesEverythingButACleanup(t *testing.T) {
	s := withKeys(t, signingKey(1))
	a, err := records.ReadAccepted(t.Context(), s.host)
	signed, _, _ := published.Signatures(s.cluster.node.Desired)
	if err != nil || a.Term != 100 || a.Sequence != s.sequence || a.Text != bundle.Of([]byte(signed)) {
		t.Errorf("%+v, %v", a, err)
	}
	infos, err := s.host.Stat(t.Context(), []string{records.FileAccepted})
	if err != nil || !infos[0].IsTrusted() {
		t.Errorf("%+v, %v", infos, err)
	}
}

// TestAPermissionOutlivesABootWithinItsTime: a change may need more than one boot.
func TestAPermissionOutlivesABootWithinItsTime(t *testing.T) {
	s := permitted(t)
	s.clock.Pass(5 * time.Minute)
	s.boot()
	s.restart()
	s.cluster.away = nil
	if got := s.turn(); got.State != published.StateApplied || got.Expired {
		t.Errorf("%s, expired %t: %s", got.State, got.Expired, got.Message)
	}
}
