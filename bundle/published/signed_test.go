package published

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// signingKey returns a key that is always the same.
func signingKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(keys ...ed25519.PrivateKey) Keys {
	var list Keys
	for _, k := range keys {
		list = append(list, k.Public().(ed25519.PublicKey))
	}
	return list
}

func signedDesired(t testing.TB, keys ...ed25519.PrivateKey) (Desired, string) {
	t.Helper()
	d := desired(t)
	d.Schema, d.NodeName, d.Term, d.Sequence, d.PermitFor = Schema, "win-a", 1790000000, 7, 1800
	text, err := d.Sign(keys)
	if err != nil {
		t.Fatal(err)
	}
	return d, text
}

func TestWhatAKeyHasSignedIsOpened(t *testing.T) {
	first, second := signingKey(1), signingKey(2)
	want, text := signedDesired(t, first, second)
	for name, keys := range map[string]Keys{"both": public(first, second), "the first": public(first), "the second": public(signingKey(3), second)} {
		got, err := keys.Open(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// A program that knows no signatures reads the same.
	if got, err := DecodeDesired(text); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if again, err := want.Sign([]ed25519.PrivateKey{first, second}); err != nil || again != text {
		t.Errorf("the same value is signed in another form: %v", err)
	}
}

// TestAFieldOfALaterVersionIsSignedToo: a reader that does not know a field verifies it all the same, and does not lose the signature for it.
func TestAFieldOfALaterVersionIsSignedToo(t *testing.T) {
	key := signingKey(1)
	want, text := signedDesired(t, key)
	payload, _, err := Signatures(text)
	if err != nil {
		t.Fatal(err)
	}
	payload = strings.TrimSuffix(payload, "}") + `,"later":{"signatures":[1,2]}}`
	signatures, err := json.Marshal([]Signature{{KeyID(public(key)[0]), ed25519.Sign(key, preAuthenticated([]byte(payload)))}})
	if err != nil {
		t.Fatal(err)
	}
	later := strings.TrimSuffix(payload, "}") + signaturesField + string(signatures) + "}"
	if got, err := public(key).Open(later); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := public(key).Open(strings.Replace(later, "[1,2]", "[1,3]", 1)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a changed field of a later version: %v", err)
	}
}

func TestWhatNoKeyHasSignedIsRefused(t *testing.T) {
	key := signingKey(1)
	_, text := signedDesired(t, key)
	payload, _, err := Signatures(text)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.TrimSuffix(payload, "}")
	otherType := ed25519.Sign(key, []byte(payload)) // without the type that is signed
	foreign, err := json.Marshal([]Signature{{KeyID(public(key)[0]), otherType}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"no signatures":                {payload, ErrUnsigned},
		"an empty list":                {body + `,"signatures":[]}`, ErrUnsigned},
		"another key":                  {func() string { _, x := signedDesired(t, signingKey(2)); return x }(), ErrUntrusted},
		"another node":                 {strings.Replace(text, `"nodeName":"win-a"`, `"nodeName":"win-b"`, 1), ErrUntrusted},
		"a higher permission":          {strings.Replace(text, `"maxImpact":"restart"`, `"maxImpact":"reboot"`, 1), ErrUntrusted},
		"urgent":                       {strings.Replace(text, `,"signatures":`, `,"urgent":true,"signatures":`, 1), ErrUntrusted},
		"a newer counter":              {strings.Replace(text, `"sequence":7`, `"sequence":8`, 1), ErrUntrusted},
		"a signature of another type":  {body + signaturesField + string(foreign) + "}", ErrUntrusted},
		"a field behind them":          {strings.TrimSuffix(text, "}") + `,"urgent":true}`, ErrInvalid},
		"a field before the closing":   {strings.TrimSuffix(text, "]}") + `,{"key":1}]}`, ErrInvalid},
		"a blank behind it":            {text + " ", ErrUnsigned},
		"signatures that are a number": {body + `,"signatures":1}`, ErrInvalid},
		"too many of them":             {body + `,"signatures":[` + strings.TrimSuffix(strings.Repeat(`{"key":"a","sig":""},`, maxSignatures+1), ",") + `]}`, ErrInvalid},
		"nothing but the field":        {`,"signatures":}`, ErrInvalid},
		"nothing":                      {"", ErrUnsigned},
		"too long":                     {text + strings.Repeat(" ", maxAnnotation), ErrInvalid},
	} {
		if _, err := public(key).Open(tt.text); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if _, err := Keys(nil).Open(text); !errors.Is(err, ErrUntrusted) {
		t.Errorf("without keys: %v", err)
	}
}

func TestCountersOnlyRise(t *testing.T) {
	rising := []Counter{{}, {0, 1}, {1, 0}, {1, 9}, {2, 0}, {1790000000, 3}}
	for i, a := range rising {
		for j, b := range rising {
			if got, want := a.Compare(b), i-j; (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
	if got := (Desired{Term: 17, Sequence: 4}).Counter().String(); got != "17.4" {
		t.Errorf("for people it is %q", got)
	}
}

func TestTheKeysOfAHostAreReadStrictly(t *testing.T) {
	keys := public(signingKey(1), signingKey(2))
	text, err := keys.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeKeys(text)
	if err != nil || !cmp.Equal(keys, got) {
		t.Errorf("%v, %v", got, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "text": "keys", "text before them": "keys\n" + string(text), "text behind them": string(text) + "more",
		"a certificate": strings.ReplaceAll(string(text), pemPublicKey, "CERTIFICATE"),
		"an RSA key":    "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n",
	} {
		if _, err := DecodeKeys([]byte(text)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsWrittenAgainSaysTheSame(t *testing.T) {
	d, _ := signedDesired(t, signingKey(1))
	again := d
	again.Term, again.Sequence, again.PermitFor = 9, 9, 9
	if !d.SaysTheSame(again) {
		t.Error("another counter differs")
	}
	for name, change := range map[string]func(*Desired){
		"bundle": func(d *Desired) { d.Bundle = "" }, "impact": func(d *Desired) { d.MaxImpact = "drain" }, "urgent": func(d *Desired) { d.Urgent = true },
		"node": func(d *Desired) { d.NodeName = "win-b" }, "another Node of the name": func(d *Desired) { d.NodeUID = "x" }, "namespace": func(d *Desired) { d.Namespace = "x" }, "payload": func(d *Desired) { d.Payload = "x" },
		"removal": func(d *Desired) { d.Remove = true }, "inputs": func(d *Desired) { d.Inputs = []Input{InputMirrors} }, "a layer": func(d *Desired) { d.Cluster.Parts++ }, "an inline layer": func(d *Desired) { d.Node.Inline = nil },
	} {
		other := d
		change(&other)
		if d.SaysTheSame(other) {
			t.Errorf("%s: is the same", name)
		}
	}
}

// TestSigners: who has signed an annotation is what the signatures prove, not what they say.
func TestSigners(t *testing.T) {
	first, second := signingKey(1), signingKey(2)
	ids := func(keys ...ed25519.PrivateKey) []string {
		var list []string
		for _, k := range public(keys...) {
			list = append(list, KeyID(k))
		}
		slices.Sort(list)
		return list
	}
	_, both := signedDesired(t, first, second)
	_, one := signedDesired(t, first)
	claim, err := json.Marshal([]Signature{{Key: KeyID(public(second)[0]), Value: make([]byte, ed25519.SignatureSize)}})
	if err != nil {
		t.Fatal(err)
	}
	claimed := strings.TrimSuffix(one, "]}") + "," + strings.TrimPrefix(string(claim), "[") + "}"
	if _, list, err := Signatures(claimed); err != nil || len(list) != 2 {
		t.Fatalf("%d signatures, %v", len(list), err)
	}
	payload, _, err := Signatures(one)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		keys Keys
		text string
		want []string
	}{
		"both":                                  {public(first, second), both, ids(first, second)},
		"both, the keys in another order":       {public(second, first), both, ids(first, second)},
		"one of two keys":                       {public(first, second), one, ids(first)},
		"a key that is not trusted":             {public(signingKey(3), second), both, ids(second)},
		"a key twice":                           {public(first, first), both, ids(first)},
		"a signature that names another key":    {public(first, second), claimed, ids(first)},
		"nothing but a signature that is a lie": {public(second), claimed, nil},
		"no signatures":                         {public(first), payload, nil},
		"another text":                          {public(first), strings.Replace(one, `"sequence":7`, `"sequence":8`, 1), nil},
	} {
		if diff := cmp.Diff(tt.want, tt.keys.Signers(tt.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tt := range map[string]struct {
		ids  []string
		want bool
	}{"its ID": {ids(first), true}, "one of two": {ids(second, signingKey(3)), true}, "another": {ids(signingKey(3)), false}, "none": {nil, false}} {
		if got := public(first, second).Has(tt.ids); got != tt.want {
			t.Errorf("%s: has %t", name, got)
		}
	}
}

// TestWhatIsNotSigned: nothing is written that no agent would read.
func TestWhatIsNotSigned(t *testing.T) {
	d, signed := signedDesired(t, signingKey(1))
	payload, _, err := Signatures(signed)
	if err != nil {
		t.Fatal(err)
	}
	// As it is without signatures, the annotation has its largest size.
	full := d
	full.Namespace += strings.Repeat("n", maxAnnotation-len(payload))
	if text, err := full.Encode(); err != nil || len(text) != maxAnnotation {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	larger := full
	larger.Namespace += "n"
	wrong := d
	wrong.MaxImpact = "all"
	none, many := []ed25519.PrivateKey{}, make([]ed25519.PrivateKey, maxSignatures+1)
	for i := range many {
		many[i] = signingKey(byte(i))
	}
	for name, tt := range map[string]struct {
		desired Desired
		keys    []ed25519.PrivateKey
	}{
		"too long with its signatures":    {full, many[:1]},
		"too long without its signatures": {larger, many[:1]},
		"an unknown impact":               {wrong, many[:1]},
		"no key":                          {d, none},
		"too many keys":                   {d, many},
	} {
		if text, err := tt.desired.Sign(tt.keys); !errors.Is(err, ErrInvalid) || text != "" {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	text, err := d.Sign(many[:maxSignatures])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := public(many[maxSignatures-1]).Open(text); err != nil {
		t.Errorf("as many keys as are read: %v", err)
	}
}

// BenchmarkOpen is what an operator pays for each node once, and an agent for each change.
func BenchmarkOpen(b *testing.B) {
	key := signingKey(1)
	_, text := signedDesired(b, key)
	for b.Loop() {
		if _, err := public(key).Open(text); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := signingKey(1)
	_, text := signedDesired(f, key)
	payload, _, err := Signatures(text)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(payload)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := public(key).Open(text)
		if err != nil {
			return
		}
		// Nothing but this one was ever signed with the key, and whoever does not verify it reads the same.
		got, _, err := Signatures(text)
		if again, plain := DecodeDesired(text); err != nil || got != payload || plain != nil || !cmp.Equal(again, d) {
			t.Errorf("%q is accepted", text)
		}
	})
}
