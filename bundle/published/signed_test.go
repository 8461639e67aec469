package published

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
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
	signatures, err := json.Marshal([]Signature{{KeyID(public(key)[0]), ed25519.Sign(key, authenticated([]byte(payload)))}})
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
		t.Error("another counter says something else")
	}
	for name, change := range map[string]func(*Desired){
		"bundle": func(d *Desired) { d.Bundle = "" }, "impact": func(d *Desired) { d.MaxImpact = "drain" }, "urgent": func(d *Desired) { d.Urgent = true },
		"node": func(d *Desired) { d.NodeName = "win-b" }, "namespace": func(d *Desired) { d.Namespace = "x" }, "payload": func(d *Desired) { d.Payload = "x" },
		"inputs": func(d *Desired) { d.Inputs = []Input{InputMirrors} }, "a layer": func(d *Desired) { d.Cluster.Parts++ }, "an inline layer": func(d *Desired) { d.Node.Inline = nil },
	} {
		other := d
		change(&other)
		if d.SaysTheSame(other) {
			t.Errorf("%s: says the same", name)
		}
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
