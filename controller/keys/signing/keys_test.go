package signing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/published"
)

const namespace = "operator"

// theTime is when tests run.
var theTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func keysIn(c client.Client) *Keys {
	return &Keys{Live: c, Client: c, Namespace: namespace, Now: func() time.Time { return theTime }}
}

// begun is an operator that signs.
func begun(t *testing.T, c client.Client) *Keys {
	t.Helper()
	k := keysIn(c)
	if err := k.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// secretIn reads the Secret.
func secretIn(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: SecretName}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func wanted(t *testing.T) published.Desired {
	t.Helper()
	d := published.Desired{MaxImpact: bundle.ImpactNone, Namespace: namespace, Cluster: published.Layer{Digest: bundle.Of([]byte("c")), Parts: 1}, Node: published.Layer{Digest: bundle.Of([]byte("n")), Parts: 1}}
	var err error
	if d.Bundle, err = bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest); err != nil {
		t.Fatal(err)
	}
	return d
}

func sign(t *testing.T, k *Keys, node string) string {
	t.Helper()
	text, err := k.SignDesired(published.NodeID{Name: node}, wanted(t))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestWhatThisProcessSignsIsKnown: it is not decoded and verified again, and equals what another process with the same keys reads.
func TestWhatThisProcessSignsIsKnown(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	k := begun(t, c)
	d := wanted(t)
	d.Inputs, d.Payload, d.PermitFor, d.MaxImpact = []published.Input{published.InputMirrors}, bundle.Of([]byte("p")), 60, bundle.ImpactReboot
	text, err := k.SignDesired(published.NodeID{Name: "win-a"}, d)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := k.opened["win-a"]; !ok || o.text != text || o.err != nil {
		t.Errorf("%+v", o)
	}
	got, err := k.OpenDesired(published.NodeID{Name: "win-a"}, text)
	if err != nil {
		t.Fatal(err)
	}
	other := keysIn(c)
	if _, err := other.ReadPublicKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, err := other.OpenDesired(published.NodeID{Name: "win-a"}, text)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-read +signed):\n%s", err, diff)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-b"}, text); !errors.Is(err, ErrOtherNode) {
		t.Errorf("for another Node: %v", err)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, text+" "); err == nil {
		t.Error("another text is taken for the one that was signed")
	}
}

func TestWhatIsSignedIsOpenedForItsNodeAlone(t *testing.T) {
	k := begun(t, fake.NewClientBuilder().Build())
	text := sign(t, k, "win-a")
	for range 2 { // the second time from memory
		d, err := k.OpenDesired(published.NodeID{Name: "win-a"}, text)
		if err != nil || d.NodeName != "win-a" || d.Bundle != wanted(t).Bundle || d.Term != theTime.Unix() || d.Sequence != 1 {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := k.OpenDesired(published.NodeID{Name: "win-b"}, text); !errors.Is(err, ErrOtherNode) {
			t.Errorf("another node: %v", err)
		}
	}
	plain, err := wanted(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var newer *bundle.SchemaError
	for name, tt := range map[string]struct {
		text string
		is   func(error) bool
	}{
		"without a signature": {plain, func(err error) bool { return errors.Is(err, published.ErrUnsigned) }},
		"nothing":             {"", func(err error) bool { return errors.Is(err, published.ErrUnsigned) }},
		"of another operator": {sign(t, begun(t, fake.NewClientBuilder().Build()), "win-a"), func(err error) bool { return errors.Is(err, published.ErrUntrusted) }},
		"of a newer operator": {`{"schema":9}`, func(err error) bool { return errors.As(err, &newer) }},
	} {
		if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, tt.text); !tt.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsSignedIsNotForALaterNodeOfTheName, whether it was opened for the earlier one before or not.
func TestWhatIsSignedIsNotForALaterNodeOfTheName(t *testing.T) {
	k := begun(t, fake.NewClientBuilder().Build())
	first, second := published.NodeID{Name: "win-a", UID: "first"}, published.NodeID{Name: "win-a", UID: "second"}
	text, err := k.SignDesired(first, wanted(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d, err := k.OpenDesired(first, text); err != nil || d.NodeUID != "first" {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := k.OpenDesired(second, text); !errors.Is(err, ErrOtherNode) {
			t.Errorf("a later Node of the name: %v", err)
		}
	}
	if _, err := k.OpenDesired(second, sign(t, k, "win-a")); err != nil {
		t.Errorf("of an operator that signed no UID: %v", err)
	}
}

func TestNothingIsSignedBeforeATermHasBegun(t *testing.T) {
	k := keysIn(fake.NewClientBuilder().Build())
	if _, err := k.ReadPublicKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.SignDesired(published.NodeID{Name: "win-a"}, wanted(t)); !errors.Is(err, ErrNotBegun) {
		t.Error(err)
	}
}

// TestEachStartOfAnOperatorIsNewer: also with a clock that went back, and with a Secret of an earlier day.
func TestEachStartOfAnOperatorIsNewer(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	last := published.Counter{}
	newer := func(name string, k *Keys) {
		t.Helper()
		for range 2 {
			d, err := k.OpenDesired(published.NodeID{Name: "win-a"}, sign(t, k, "win-a"))
			if err != nil || d.Counter().Compare(last) <= 0 {
				t.Errorf("%s: %s after %s, %v", name, d.Counter(), last, err)
			}
			last = d.Counter()
		}
	}
	newer("the first", begun(t, c))
	newer("a restart within a second", begun(t, c))
	earlier := secretIn(t, c).DeepCopy()
	back := keysIn(c)
	back.Now = func() time.Time { return theTime.Add(-time.Hour) }
	if err := back.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer("a clock that went back", back)
	// etcd is restored: the Secret is that of before, and some time has passed.
	now := secretIn(t, c)
	now.Annotations = earlier.Annotations
	if err := c.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	later := keysIn(c)
	later.Now = func() time.Time { return theTime.Add(time.Minute) }
	if err := later.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer("a restored Secret", later)
	damaged := secretIn(t, c)
	damaged.Annotations[TermAnnotation] = "-7"
	if err := c.Update(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	latest := keysIn(c)
	latest.Now = func() time.Time { return theTime.Add(2 * time.Minute) }
	if err := latest.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer("a damaged term", latest)
}

func TestKeysAreMadeOnceAndAddedWhenAsked(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	k := begun(t, c)
	before, err := k.ReadPublicKeys(t.Context())
	if err != nil || len(secretIn(t, c).Data) != 1 {
		t.Fatalf("%d keys, %v", len(secretIn(t, c).Data), err)
	}
	if again, err := begun(t, c).ReadPublicKeys(t.Context()); err != nil || string(again) != string(before) {
		t.Errorf("another operator has other keys: %v", err)
	}
	old := sign(t, k, "win-a")
	s := secretIn(t, c)
	var first string
	for name := range s.Data {
		first = name
	}
	s.Annotations[AddAnnotation] = ""
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	both, err := k.ReadPublicKeys(t.Context())
	if err != nil || strings.Count(string(both), "BEGIN") != 2 || !strings.Contains(string(both), strings.TrimSpace(string(before))) {
		t.Fatalf("%s, %v", both, err)
	}
	if s = secretIn(t, c); len(s.Data) != 2 || hasKey(s.Annotations, AddAnnotation) {
		t.Errorf("%d keys, %v", len(s.Data), s.Annotations)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, old); err != nil {
		t.Errorf("what the first key has signed: %v", err)
	}
	trusted, err := published.DecodeKeys(before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trusted.Open(sign(t, k, "win-a")); err != nil {
		t.Errorf("a host that has the first key alone: %v", err)
	}
	delete(s.Data, first)
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if one, err := k.ReadPublicKeys(t.Context()); err != nil || strings.Count(string(one), "BEGIN") != 1 || string(one) == string(before) {
		t.Errorf("%s, %v", one, err)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, old); !errors.Is(err, published.ErrUntrusted) {
		t.Errorf("what a removed key has signed: %v", err)
	}
}

func hasKey(m map[string]string, key string) bool { _, ok := m[key]; return ok }

// TestADamagedKeyIsNamedWithoutItsContent.
func TestADamagedKeyIsNamedWithoutItsContent(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"no key":        {"mine.pem": []byte("sesame")},
		"too many keys": {},
	} {
		c := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName}, Data: map[string][]byte{}}).Build()
		s := secretIn(t, c)
		s.Data = data
		if name == "too many keys" {
			one := keysIn(fake.NewClientBuilder().Build())
			if _, err := one.ReadPublicKeys(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range maxKeys + 1 {
				for _, text := range secretIn(t, one.Client).Data {
					s.Data[strconv.Itoa(i)] = text
				}
			}
		}
		if err := c.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if _, err := keysIn(c).ReadPublicKeys(t.Context()); err == nil || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), "fix: ") || !strings.Contains(err.Error(), SecretName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoOperatorsBeginTwoTerms: whoever writes the Secret second has seen the term of the first.
func TestTwoOperatorsBeginTwoTerms(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	begun(t, c)
	raced := false
	racing := interceptor.NewClient(c, interceptor.Funcs{Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if !raced {
			raced = true
			begun(t, c)
		}
		return w.Update(ctx, o, opts...)
	}})
	k := begun(t, racing)
	d, err := k.OpenDesired(published.NodeID{Name: "win-a"}, sign(t, k, "win-a"))
	if err != nil || d.Term != theTime.Unix()+2 || !raced {
		t.Errorf("term %d, %v", d.Term, err)
	}
}

func TestASecretThatCannotBeReadIsSaid(t *testing.T) {
	away := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewInternalError(fmt.Errorf("away"))
	}})
	if err := keysIn(away).BeginTerm(t.Context()); err == nil || !strings.Contains(err.Error(), SecretName) {
		t.Error(err)
	}
}

// TestAnOperatorThatWasSupersededSignsNothing: a leader that was frozen goes on for a while. Nodes would refuse what it signs, and the two would
// write in turn for ever.
func TestAnOperatorThatWasSupersededSignsNothing(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	old := begun(t, c)
	text := sign(t, begun(t, c), "win-a")
	if _, err := old.OpenDesired(published.NodeID{Name: "win-a"}, text); err != nil {
		t.Fatal(err)
	}
	if _, err := old.SignDesired(published.NodeID{Name: "win-b"}, published.Desired{}); !errors.Is(err, ErrSuperseded) {
		t.Errorf("it signs: %v", err)
	}
	if err := old.BeginTerm(t.Context()); !errors.Is(err, ErrSuperseded) {
		t.Errorf("it begins again: %v", err)
	}
}

// TestAnOperatorBeginsAfterWhatStandsOnNodes: the Secret is one of an earlier day, and the clock went back.
func TestAnOperatorBeginsAfterWhatStandsOnNodes(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	begun(t, c)
	earlier := secretIn(t, c).DeepCopy()
	text := sign(t, begun(t, c), "win-a")
	now := secretIn(t, c)
	now.Annotations = earlier.Annotations
	if err := c.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	back := keysIn(c)
	back.Now = func() time.Time { return theTime.Add(-24 * time.Hour) }
	if err := back.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, err := back.OpenDesired(published.NodeID{Name: "win-a"}, text)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it may be that nothing was wrong
		if err := back.BeginTerm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d, err := back.OpenDesired(published.NodeID{Name: "win-a"}, sign(t, back, "win-a"))
	if err != nil || d.Counter().Compare(seen.Counter()) <= 0 {
		t.Errorf("%s after %s, %v", d.Counter(), seen.Counter(), err)
	}
}

// TestWhatIsKeptIsTheNewest: an earlier annotation that was put back is signed, and nothing new is made of it.
func TestWhatIsKeptIsTheNewest(t *testing.T) {
	k := begun(t, fake.NewClientBuilder().Build())
	first, second := sign(t, k, "win-a"), sign(t, k, "win-a")
	if _, err := k.OpenNewest(published.NodeID{Name: "win-a"}, first); err != nil {
		t.Errorf("beside one that was not written: %v", err)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, second); err != nil {
		t.Errorf("one that the Node has: %v", err)
	}
	if _, err := k.OpenNewest(published.NodeID{Name: "win-a"}, first); !errors.Is(err, ErrOlder) {
		t.Errorf("an earlier one: %v", err)
	}
	if _, err := k.OpenNewest(published.NodeID{Name: "win-a"}, second); err != nil {
		t.Errorf("the newest: %v", err)
	}
	if _, err := k.OpenDesired(published.NodeID{Name: "win-a"}, first); err != nil {
		t.Errorf("an earlier one is signed: %v", err)
	}
}

// TestATermThatCannotRiseIsRefused: it would end all updates for good.
func TestATermThatCannotRiseIsRefused(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	begun(t, c)
	s := secretIn(t, c)
	s.Annotations[TermAnnotation] = "9223372036854775807"
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := keysIn(c).BeginTerm(t.Context()); err == nil || !strings.Contains(err.Error(), "fix: remove the annotation") {
		t.Errorf("it begins: %v", err)
	}
}
