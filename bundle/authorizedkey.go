package bundle

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AuthorizedKey is an SSH public key with which administrators can log in to the host: a line of AuthorizedKeysFile. It
// is not secret.
type AuthorizedKey struct {
	// Fingerprint is that of the key, as ssh-keygen -l prints it: "SHA256:..." (Fingerprint).
	Fingerprint string `json:"fingerprint"`
	// Line is "ALGORITHM BASE64", without options and comment.
	Line   string `json:"line"`
	Impact Impact `json:"impact"`
}

// AuthorizedKeysFolder is where OpenSSH for Windows has its configuration, and AuthorizedKeysFile the file with the
// keys of all accounts of the group Administrators
// (learn.microsoft.com/windows-server/administration/openssh/openssh_keymanagement, "Administrative user").
const (
	AuthorizedKeysFolder = `C:\ProgramData\ssh`
	AuthorizedKeysFile   = AuthorizedKeysFolder + `\administrators_authorized_keys`
)

// keyAlgorithms are the algorithms of keys that sshd accepts and that no certificate and no security token is behind.
func keyAlgorithms() []string {
	return []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"}
}

var errKeyLine = errors.New("it is not ALGORITHM BASE64 of an SSH public key")

// Fingerprint returns the fingerprint of a public key that is given as "ALGORITHM BASE64".
func Fingerprint(line string) (string, error) {
	algorithm, text, _ := strings.Cut(line, " ")
	wire, err := base64.StdEncoding.Strict().DecodeString(text)
	// The wire form begins with the name of the algorithm, after its length (RFC 4253, 6.6). The decoder skips line
	// breaks, of which a line has none.
	prefix := string([]byte{0, 0, 0, byte(len(algorithm))}) + algorithm
	if err != nil || strings.ContainsAny(text, "\r\n") || !slices.Contains(keyAlgorithms(), algorithm) ||
		!strings.HasPrefix(string(wire), prefix) {
		return "", errKeyLine
	}
	sum := sha256.Sum256(wire)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:]), nil
}

// maxKeyLine is the size of the longest line, in bytes: an RSA key of 16,384 bits has 2.8 KiB.
const maxKeyLine = 4 << 10

// checkAuthorizedKey accepts a line that can stand in the file as it is, by the name of its key.
func checkAuthorizedKey(k AuthorizedKey) error {
	if len(k.Line) > maxKeyLine {
		return fmt.Errorf("line: it has %d bytes, at most %d are allowed", len(k.Line), maxKeyLine)
	}
	fingerprint, err := Fingerprint(k.Line)
	if err != nil {
		return fmt.Errorf("line: %w", err)
	}
	if fingerprint != k.Fingerprint {
		return fmt.Errorf("fingerprint: it is %.100q, and that of the key is %s", k.Fingerprint, fingerprint)
	}
	if k.Impact != ImpactNone {
		return fmt.Errorf("impact: it is %q: sshd reads the file at each login", k.Impact)
	}
	return nil
}
