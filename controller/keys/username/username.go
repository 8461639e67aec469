// Package username encrypts the user name of an instance for its Node, in the format of the existing operator.
//
//	name --OpenPGP, passphrase: the text of private-key.pem--> armor --first and last line left out, one line--> annotation
//
// The name needs no secrecy: windows-instances has it in plain text. The annotation is written by nodes too, so it is
// never a reason to log in; it is read for instances that are no longer in windows-instances, to clean them
// up.
package username

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"

	"wmco/bundle"
)

// Annotation of a Node holds the encrypted name.
const Annotation = "windowsmachineconfig.openshift.io/username"

const (
	blockType = "ENCRYPTED DATA"
	firstLine = "-----BEGIN " + blockType + "-----"
	lastLine  = "-----END " + blockType + "-----"
	// lineBreak stands for a line break in an annotation.
	lineBreak = "<wmcoMarker>"
)

// Limits of the text. Windows has user names of up to 256 characters, with the domain before them.
const (
	maxAnnotation = 16 << 10
	maxName       = 1 << 10
)

// ErrUnreadable is wrapped by every error of DecryptName: the annotation is damaged, or was encrypted with another key.
var ErrUnreadable = errors.New("the annotation " + Annotation + " cannot be read with the private key")

// EncryptName returns the annotation for a name. It differs each time: compare by DecryptName before writing it.
func EncryptName(random io.Reader, name string, key bundle.Secret) (string, error) {
	if err := checkUserName(name); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := writeEncrypted(&out, random, name, key); err != nil {
		return "", fmt.Errorf("encrypting a user name: %w", err)
	}
	text := strings.TrimPrefix(out.String(), firstLine)
	text = strings.TrimSuffix(strings.TrimSpace(text), lastLine)
	return strings.ReplaceAll(strings.Trim(text, "\n"), "\n", lineBreak), nil
}

func writeEncrypted(out io.Writer, random io.Reader, name string, key bundle.Secret) error {
	// With the checksum, which the library of the existing operator expects.
	armored, err := armor.EncodeWithChecksumOption(out, blockType, nil, true)
	if err != nil {
		return err
	}
	message, err := openpgp.SymmetricallyEncrypt(armored, []byte(key.Reveal()), nil,
		&packet.Config{Rand: random, DefaultCipher: packet.CipherAES128, S2KConfig: &s2k.Config{
			S2KMode: s2k.IteratedSaltedS2K, S2KCount: hashed,
		}})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(message, name); err != nil {
		return err
	}
	return errors.Join(message.Close(), armored.Close())
}

// DecryptName returns the name in an annotation. It also reads the older form, with the first and the last line. Errors
// wrap ErrUnreadable and have nothing of the text.
func DecryptName(text string, key bundle.Secret) (string, error) {
	if len(text) > maxAnnotation {
		return "", fmt.Errorf("%w: it is too long", ErrUnreadable)
	}
	text = strings.ReplaceAll(text, lineBreak, "\n")
	if !strings.HasPrefix(text, firstLine) {
		text = firstLine + "\n\n" + text + "\n" + lastLine
	}
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil || block.Type != blockType {
		return "", fmt.Errorf("%w: it is not armored", ErrUnreadable)
	}
	body, err := io.ReadAll(block.Body)
	if err != nil || !isReadableMessage(body) {
		return "", fmt.Errorf("%w: it is not a message with a passphrase", ErrUnreadable)
	}
	name, err := decryptBody(body, key)
	if err != nil {
		return "", fmt.Errorf("%w: it is damaged, or was encrypted with another key", ErrUnreadable)
	}
	if err := checkUserName(name); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return name, nil
}

// Kinds of OpenPGP packets (RFC 9580, section 5), and of keys from passphrases (section 3.7).
const (
	tagSessionKey = 3
	tagEncrypted  = 18
	iterated      = 3
	maxIterations = 0xe0 // 16 MiB hashed
	// hashed is how many bytes are hashed for a key, the fewest that there are: a private key cannot be guessed, and the
	// annotation is read with each step of a join.
	hashed = 64 << 10
)

// isReadableMessage reports whether the message is one that either operator writes: one key from a passphrase by
// repeated hashing, and one encrypted packet. A node can write others, whose reading takes gigabytes of memory (Argon2)
// or endless attempts.
func isReadableMessage(body []byte) bool {
	var tags []uint8
	for packets := packet.NewOpaqueReader(bytes.NewReader(body)); ; {
		p, err := packets.Next()
		if errors.Is(err, io.EOF) {
			return slices.Equal(tags, []uint8{tagSessionKey, tagEncrypted})
		}
		if err != nil || len(tags) == 2 {
			return false
		}
		// Version 4: version, cipher, kind, hash, eight bytes of salt, iterations.
		if len(tags) == 0 && (len(p.Contents) < 13 || p.Contents[0] != 4 || p.Contents[2] != iterated || p.Contents[12] > maxIterations) {
			return false
		}
		tags = append(tags, p.Tag)
	}
}

func decryptBody(body []byte, key bundle.Secret) (string, error) {
	asked := false
	prompt := func([]openpgp.Key, bool) ([]byte, error) {
		if asked {
			return nil, errors.New("the passphrase is wrong") // it would be asked for ever
		}
		asked = true
		return []byte(key.Reveal()), nil
	}
	limit := int64(maxName)
	message, err := openpgp.ReadMessage(bytes.NewReader(body), nil, prompt,
		&packet.Config{MaxDecompressedMessageSize: &limit})
	if err != nil {
		return "", err
	}
	// The end of the text is where its integrity is checked.
	name, err := io.ReadAll(io.LimitReader(message.UnverifiedBody, maxName+1))
	return string(name), err
}

// checkUserName refuses what cannot be a user name, with the rule for entries of windows-instances.
func checkUserName(name string) error {
	switch {
	case name == "":
		return errors.New("the user name is empty")
	case len(name) > maxName:
		return errors.New("the user name is too long")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the user name has a control character")
	}
	return nil
}
