package bundle

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPinnedCredentials(t *testing.T) {
	a, b := "a.example.com/x@sha256:"+strings.Repeat("ab", 32), "b.example.com/y@sha256:"+strings.Repeat("cd", 32)
	auth := func(text string) Secret { return NewSecret(base64.StdEncoding.EncodeToString([]byte(text))) }
	data, err := EncodePinnedCredentials([]PinnedCredential{{auth("user:word<&>"), []string{a}}, {auth("other:"), []string{b}}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := DecodePinnedCredentials(data)
	if err != nil || len(all) != 2 || all[a] != auth("user:word<&>") || all[b] != auth("other:") {
		t.Errorf("%d credentials, %v", len(all), err)
	}
	if text := fmt.Sprintf("%+v", all); strings.Contains(text, all[a].Reveal()) {
		t.Error("a secret is printed")
	}
}

// TestPinnedCredentialsThatCannotBeUsed, with errors that have no secrets.
func TestPinnedCredentialsThatCannotBeUsed(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("no-colon"))
	for name, text := range map[string]string{
		"no JSON":          `{"schema":1,"credentials":[{"auth":"` + secret,
		"another form":     `{"schema":1,"credentials":"` + secret + `"}`,
		"no user":          `{"schema":1,"credentials":[{"auth":"` + secret + `","images":[]}]}`,
		"no base64":        `{"schema":1,"credentials":[{"auth":"%` + secret + `","images":[]}]}`,
		"an image by tag":  `{"schema":1,"credentials":[{"auth":"` + base64.StdEncoding.EncodeToString([]byte("u:p")) + `","images":["a.example.com/x:1"]}]}`,
		"a newer schema":   `{"schema":2}`,
		"a file too large": strings.Repeat(" ", maxPinnedCredentials+1),
	} {
		all, err := DecodePinnedCredentials([]byte(text))
		if err == nil || len(all) > 0 || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %d credentials, %v", name, len(all), err)
		}
		var newer *SchemaError
		if errors.As(err, &newer) != (name == "a newer schema") || errors.Is(err, ErrTooLarge) != (name == "a file too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
