package machines

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// ErrPublicKey is wrapped by every error about a public key. The errors never contain the text, which may be a private
// key.
var ErrPublicKey = errors.New("not a supported SSH public key")

const (
	// minRSABits is the smallest size that sshd and the operator accept.
	minRSABits = 2048
	// maxRSABits is OpenSSH's own limit.
	maxRSABits = 16384
)

// keyLine is a line of an authorized_keys file without options: algorithm, key and an optional comment.
var keyLine = regexp.MustCompile(`^([a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t].*)?$`)

// PublicKey reads a file with one SSH public key and returns it as sshd reads it, "ALGORITHM BASE64". sshd ignores the
// comment, so it is left out: the same key always gives the same user data.
func PublicKey(text string) (string, error) {
	line, err := onlyLine(text)
	if err != nil {
		return "", err
	}
	parts := keyLine.FindStringSubmatch(line)
	if parts == nil {
		return "", refuseKey("it is not of the form ALGORITHM BASE64 [COMMENT], without options before it")
	}
	algorithm := parts[1]
	blob, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return "", refuseKey("the key is not base64")
	}
	if err := checkKey(algorithm, blob); err != nil {
		return "", err
	}
	return algorithm + " " + parts[2], nil
}

func refuseKey(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPublicKey, fmt.Sprintf(format, args...))
}

// onlyLine returns the one line that is neither empty nor a comment.
func onlyLine(text string) (string, error) {
	if strings.Contains(text, "PRIVATE KEY-----") {
		return "", refuseKey("it is a private key; give the public one, as 'ssh-keygen -y -f FILE' prints it")
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		return "", refuseKey("there are %d keys; give the one of the operator's private key", len(lines))
	}
	return lines[0], nil
}

// checkKey checks a key against the format of its algorithm: RFC 4253 section 6.6 (RSA), RFC 5656 section 3.1 (ECDSA),
// RFC 8709 section 4 (Ed25519). Security keys and certificates are refused: the operator's key is a file.
func checkKey(algorithm string, blob []byte) error {
	w := wire{rest: blob}
	if string(w.nextField()) != algorithm {
		return refuseKey("the key is not of the algorithm that is named before it")
	}
	var ok bool
	switch algorithm {
	case "ssh-ed25519":
		ok = len(w.nextField()) == ed25519.PublicKeySize
	case "ecdsa-sha2-nistp256":
		ok = w.onCurve("nistp256", ecdh.P256())
	case "ecdsa-sha2-nistp384":
		ok = w.onCurve("nistp384", ecdh.P384())
	case "ecdsa-sha2-nistp521":
		ok = w.onCurve("nistp521", ecdh.P521())
	case "ssh-rsa":
		exponent, modulus := w.nextNumber(), w.nextNumber()
		ok = exponent.Cmp(big.NewInt(2)) > 0 && exponent.BitLen() <= 64 && exponent.Bit(0) == 1 && modulus.Bit(0) == 1
		if bits := modulus.BitLen(); ok && !w.broken && (bits < minRSABits || bits > maxRSABits) {
			return refuseKey("an RSA key of %d bits; use %d to %d, or Ed25519", bits, minRSABits, maxRSABits)
		}
	default:
		return refuseKey("its algorithm is none of ssh-ed25519, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, ssh-rsa")
	}
	if !ok || w.broken || len(w.rest) > 0 {
		return refuseKey("the key is damaged: it does not have the format of %s", algorithm)
	}
	return nil
}

// wire reads the length-prefixed fields of RFC 4251 section 5. broken reports whether a field is incomplete or
// malformed.
type wire struct {
	rest   []byte
	broken bool
}

func (w *wire) nextField() []byte {
	if len(w.rest) < 4 || uint64(len(w.rest)-4) < uint64(binary.BigEndian.Uint32(w.rest)) {
		w.rest, w.broken = nil, true
		return nil
	}
	n := binary.BigEndian.Uint32(w.rest)
	field := w.rest[4 : 4+n]
	w.rest = w.rest[4+n:]
	return field
}

// nextNumber reads a positive mpint. Any other encoding than the shortest is malformed.
func (w *wire) nextNumber() *big.Int {
	field := w.nextField()
	n := new(big.Int).SetBytes(field)
	want := n.Bytes()
	if len(want) > 0 && want[0] >= 0x80 {
		want = append([]byte{0}, want...)
	}
	if !bytes.Equal(field, want) {
		w.broken = true
	}
	return n
}

func (w *wire) onCurve(name string, curve ecdh.Curve) bool {
	if string(w.nextField()) != name {
		return false
	}
	_, err := curve.NewPublicKey(w.nextField())
	return err == nil
}
