package bundle

import (
	"strings"
	"testing"
)

// TestLinesThatAreNoAuthorizedKey: nothing but the algorithm and the key may come into the file of a host.
func TestLinesThatAreNoAuthorizedKey(t *testing.T) {
	const line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbpjehIpuCFIGQFyZHlW+d6LA1RvnXN/7Q4eXjdzxN2"
	key := AuthorizedKey{Fingerprint: "SHA256:bCi+06JCfbR9cuEjPu5FG8xurMblmqzblvjEwq72NY4", Line: line, Impact: ImpactNone}
	if err := checkAuthorizedKey(key); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*AuthorizedKey){
		"nothing":                 func(k *AuthorizedKey) { k.Line = "" },
		"two lines":               func(k *AuthorizedKey) { k.Line += "\n" + line },
		"a line break in the key": func(k *AuthorizedKey) { k.Line = line[:20] + "\n" + line[20:] },
		"a comment":               func(k *AuthorizedKey) { k.Line += " root" },
		"options":                 func(k *AuthorizedKey) { k.Line = "cert-authority " + line },
		"another algorithm":       func(k *AuthorizedKey) { k.Line = strings.Replace(line, "ssh-ed25519", "ssh-rsa", 1) },
		"an unknown algorithm":    func(k *AuthorizedKey) { k.Line = strings.Replace(line, "ssh-ed25519", "ssh-dss", 1) },
		"no base64":               func(k *AuthorizedKey) { k.Line = "ssh-ed25519 !" },
		"another fingerprint":     func(k *AuthorizedKey) { k.Fingerprint = "SHA256:" + strings.Repeat("A", 43) },
		"an impact":               func(k *AuthorizedKey) { k.Impact = ImpactRestart },
		"a giant key":             func(k *AuthorizedKey) { k.Line += strings.Repeat("A", maxKeyLine) },
	} {
		changed := key
		change(&changed)
		if err := checkAuthorizedKey(changed); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
