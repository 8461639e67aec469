package machines

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"regexp"
	"strings"
	"testing"

	"wmco/bundle"
)

// Keys that ssh-keygen made for this test.
const (
	rsa1024 = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQCulU4F1W0ZHvqVHkB7TSjMc3rdNHftTy1gUcZS15WEiWjW3EnCQaWnzSAm8oIYyCGK4RApzQhDkn4iYfYYSSBTO28XTHNi4ZeGpAmvUSASEZngHutJ78/IET0+kRHf+xcU0o5BmM43wcLY9xBasIW82yG8UNTdDy3j+XgALAS7Ew=="
	rsa2048 = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCyEdubFcP50FYHC3zhvUwwMRt5foKqho01KX1SsBry/BahlHCD0zBmm30I3Rlcewfq3sJaDKfB7ThhkniyUclSQprUTB7VDFvxjW80dWLDnANSmuODZrxHox4pVttj2/maDCDNV4EADL3DVeAWSGqEnbC1uCbVXhwNtUlu2GY0CUevYZzuM2XcohvxHQwngRnnYkVoWWK8H6T9WDa8k/qPjzLvGlNrjjag1DYs/zdXp0T6MXIc52xbNWpXKRUWu4NUhTLeaF4S2msLzuyWCSBMGwo4sAvy87dSFm/3ngAiYmBrdMnfswl6vFYcF2B0QFnqiQwa4x4jlrrmeYoC5YDv"
	p256    = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIjpXuXp7l1QB58G5F8hUiSNp0r+lMsSoEvcyoureUd9uxdBm1tm9YpH32pN0R6UviV7W3WV5KzfIW2Cc3VZKlY="
	p384    = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBMQUc84QZwXjeqCOMqA419fNKDTiDu4Lu8o5KmRZmRWzjqY9ZzbwFWsOck7DB2FXrZ2y8LMt3dHKlGjQJ+oxPWkY7Wwaquk65hDdwfaotrLg2Pwe6exqL9pAnfG9nhBJTw=="
	p521    = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAF32x0DGvQdkxNEByc6G2vUHn3vdp4vmCWJN0eL2qjxPkmXlcT0rd/ZtjVXiPmerH8EzVs9AQUMCiAUudSAWRe0IgA7exg0/wNb4N0gCjFdTauMczi1EChIwbKvsQ7WLSdlBbbSj0FdjVG6UsAdUu3Fh4o2KO7kyrspLfBgDKG74P4zAQ=="
	edKey   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICaAOGe/oo8a/3wxU9zjAX+EEg36wyXSUC+BwD6oNl+W"
)

// field is a length-prefixed field of a key.
func field(s string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func keyOf(algorithm string, fields ...string) string {
	blob := field(algorithm) + strings.Join(fields, "")
	return algorithm + " " + base64.StdEncoding.EncodeToString([]byte(blob))
}

func TestAcceptedPublicKeys(t *testing.T) {
	for _, key := range []string{rsa2048, p256, p384, p521, edKey} {
		for _, text := range []string{
			key, key + "\n", key + "\r\n", key + " operator@example.com\n", key + "\tзаметка 'quoted' $(here)\n",
			"# the operator's key\n\n  " + key + "  \n", strings.Replace(key, " ", "\t  ", 1),
		} {
			got, err := PublicKey(text)
			if err != nil || got != key {
				t.Errorf("PublicKey(%q) = %q, %v; want %q", text, got, err, key)
			}
		}
	}
}

func TestRefusedPublicKeys(t *testing.T) {
	algorithm, blob, _ := strings.Cut(edKey, " ")
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":                    {"", "there are 0 keys"},
		"two keys":                         {edKey + "\n" + p256 + "\n", "there are 2 keys"},
		"a private key":                    {"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n", "private key"},
		"options":                          {`command="calc.exe" ` + edKey, "without options"},
		"one word":                         {"hello", "not of the form"},
		"a certificate":                    {"-----BEGIN CERTIFICATE-----", "not of the form"},
		"PuTTY's format":                   {"---- BEGIN SSH2 PUBLIC KEY ----\nComment: x\nAAAA\n", "there are 3 keys"},
		"not base64, with padding":         {algorithm + " AAAA====", "not of the form"},
		"base64 cut short":                 {edKey[:len(edKey)-1], "not base64"},
		"base64 with trailing bits":        {strings.TrimSuffix(p256, "Y=") + "Z=", "not base64"},
		"a quote in the key":               {algorithm + " AAAA'; calc #", "not of the form"},
		"another algorithm's key":          {"ssh-rsa " + blob, "not of the algorithm"},
		"a key cut short":                  {edKey[:len(edKey)-4], "damaged"},
		"a length beyond the end":          {"ssh-ed25519 " + base64.StdEncoding.EncodeToString([]byte("\xff\xff\xff\xffssh-ed25519")), "not of the algorithm"},
		"text after the key":               {keyOf("ssh-ed25519", field(strings.Repeat("x", 32)), "more"), "damaged"},
		"a point that is not on the curve": {keyOf("ecdsa-sha2-nistp256", field("nistp256"), field("\x04"+strings.Repeat("x", 64))), "damaged"},
		"another curve":                    {keyOf("ecdsa-sha2-nistp256", field("nistp384"), field("")), "damaged"},
		"a weak RSA key":                   {rsa1024, "RSA key of 1024 bits"},
		"an even RSA exponent":             {keyOf("ssh-rsa", field("\x04"), field("\x01"+strings.Repeat("x", 255)+"y")), "damaged"},
		"a negative RSA modulus":           {keyOf("ssh-rsa", field("\x01\x00\x01"), field("\xff"+strings.Repeat("y", 255))), "damaged"},
		"DSA":                              {keyOf("ssh-dss", field("x")), "none of"},
		"a security key":                   {keyOf("sk-ssh-ed25519@openssh.com", field("x")), "none of"},
		"a signed key":                     {keyOf("ssh-ed25519-cert-v01@openssh.com", field("x")), "none of"},
	} {
		got, err := PublicKey(c.text)
		if !errors.Is(err, ErrPublicKey) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: PublicKey = %q, %v; want an error with %q", name, got, err, c.want)
		}
	}
}

func TestErrorsDoNotContainTheText(t *testing.T) {
	for _, text := range []string{"c2VjcmV0", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0", "ssh-ed25519 c2VjcmV0", "c2VjcmV0 c2VjcmV0", "a\nc2VjcmV0"} {
		if _, err := PublicKey(text); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("PublicKey(%q): %v", text, err)
		}
	}
}

func TestUserDataOfPlatformsWithoutIt(t *testing.T) {
	for _, p := range []bundle.Platform{"", "None", "aws"} {
		if text, err := UserData(p, edKey); err == nil {
			t.Errorf("UserData(%q) = %q", p, text)
		}
	}
}

func FuzzPublicKey(f *testing.F) {
	for _, key := range []string{rsa1024, rsa2048, p256, p384, p521, edKey, "# x\n" + edKey + " it's\n"} {
		f.Add(key)
	}
	line := regexp.MustCompile(`^[a-z0-9-]+ [A-Za-z0-9+/]+={0,2}$`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := PublicKey(text)
		if err != nil {
			return
		}
		if !line.MatchString(key) || !strings.Contains(strings.ReplaceAll(text, "\t", " "), strings.Fields(key)[1]) {
			t.Errorf("PublicKey(%q) = %q", text, key)
		}
		if again, err := PublicKey(key); err != nil || again != key {
			t.Errorf("PublicKey(%q) = %q, %v", key, again, err)
		}
	})
}
