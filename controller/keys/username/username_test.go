package username

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"
	oldpgp "golang.org/x/crypto/openpgp"           //nolint:staticcheck // the library of the existing operator
	oldarmor "golang.org/x/crypto/openpgp/armor"   //nolint:staticcheck // the library of the existing operator
	oldpacket "golang.org/x/crypto/openpgp/packet" //nolint:staticcheck // the library of the existing operator

	"wmco/bundle"
)

const passphrase = "-----BEGIN PRIVATE KEY-----\nfor tests\n-----END PRIVATE KEY-----\n"

var (
	key   = bundle.NewSecret(passphrase)
	names = []string{"Administrator", `EXAMPLE\wmco`, "jane doe", "Jürgen", "wmco@corp.example", strings.Repeat("x", 300)}
)

func encrypted(t testing.TB, name string) string {
	t.Helper()
	text, err := EncryptName(rand.Reader, name, key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsEncryptedIsReadAgain(t *testing.T) {
	for _, name := range names {
		text := encrypted(t, name)
		if got, err := DecryptName(text, key); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		if text == encrypted(t, name) {
			t.Errorf("%q is encrypted the same way twice", name)
		}
		if strings.ContainsAny(text, "\n\r ") || strings.Contains(text, "-----") || strings.Contains(text, name) {
			t.Errorf("an annotation of %q: %q", name, text)
		}
		if quoted, err := json.Marshal(text); err != nil || len(quoted) > maxAnnotation {
			t.Errorf("%q has %d bytes: %v", name, len(quoted), err)
		}
	}
}

// TestTheExistingOperatorReadsOurs reads with its library, joined as it joins the lines.
func TestTheExistingOperatorReadsOurs(t *testing.T) {
	for _, name := range names {
		text := firstLine + "\n\n" + strings.ReplaceAll(encrypted(t, name), lineBreak, "\n") + "\n" + lastLine
		block, err := oldarmor.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		message, err := oldpgp.ReadMessage(block.Body, nil, func([]oldpgp.Key, bool) ([]byte, error) { return []byte(passphrase), nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(message.UnverifiedBody); err != nil || string(got) != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// existing returns an annotation as the existing operator writes it, with the first and last line or without.
func existing(t *testing.T, name string, config *oldpacket.Config) string {
	t.Helper()
	var out bytes.Buffer
	armored, err := oldarmor.Encode(&out, blockType, nil)
	if err != nil {
		t.Fatal(err)
	}
	message, err := oldpgp.SymmetricallyEncrypt(armored, []byte(passphrase), nil, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(message, name); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(message.Close(), armored.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatTheExistingOperatorWroteIsRead(t *testing.T) {
	for _, name := range names {
		whole := existing(t, name, nil)
		older := strings.ReplaceAll(whole, "\n", lineBreak)
		newer := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(whole, firstLine), lastLine), "\n")
		newer = strings.ReplaceAll(newer, "\n", lineBreak)
		for form, text := range map[string]string{"older": older, "newer": newer, "with the last line": newer + lineBreak + lastLine} {
			if got, err := DecryptName(text, key); err != nil || got != name {
				t.Errorf("the %s form of %q: %q, %v", form, name, got, err)
			}
		}
	}
}

func TestUnreadableAnnotations(t *testing.T) {
	right := encrypted(t, "Administrator")
	middle := len(right) / 2
	changed := func(b byte) byte {
		if b == 'A' {
			return 'B'
		}
		return 'A'
	}
	for name, text := range map[string]string{
		"empty": "", "text": "hello", "base64 of text": "aGVsbG8=", "half": right[:middle], "too long": strings.Repeat("A", maxAnnotation+1),
		"a changed character":        right[:middle] + string(changed(right[middle])) + right[middle+1:],
		"another kind of block":      strings.ReplaceAll(firstLine, blockType, "PGP MESSAGE") + "\n\nAAAA\n" + strings.ReplaceAll(lastLine, blockType, "PGP MESSAGE"),
		"one more packet":            armored(t, append(body(t, right), body(t, right)...)),
		"not encrypted":              armored(t, []byte("\xcb\x0bb\x00\x00\x00\x00\x00hello")),
		"a hash of gigabytes":        argon2(t),
		"a hash of many iterations":  iterations(t, right, 0xff),
		"a key without iterations":   kind(t, right, 1),
		"a name with a control code": existing(t, "a\x07b", nil),
		"an empty name":              existing(t, "", nil),
		"a name that is too long":    existing(t, strings.Repeat("x", maxName+1), nil),
		"a packed bomb":              existing(t, strings.Repeat("x", 1<<24), &oldpacket.Config{DefaultCompressionAlgo: oldpacket.CompressionZLIB}),
	} {
		got, err := DecryptName(text, key)
		if !errors.Is(err, ErrUnreadable) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "for tests") {
			t.Errorf("%s: the error has the key: %v", name, err)
		}
	}
	if got, err := DecryptName(right, bundle.NewSecret("another key")); !errors.Is(err, ErrUnreadable) {
		t.Errorf("with another key: %q, %v", got, err)
	}
}

// TestTheMostIterations: more iterations than the limit are not tried, whatever the key is.
func TestTheMostIterations(t *testing.T) {
	message := body(t, encrypted(t, "Administrator"))
	for n, want := range map[byte]bool{maxIterations: true, maxIterations + 1: false} {
		message[2+12] = n
		if got := isReadableMessage(message); got != want {
			t.Errorf("%#x: %v", n, got)
		}
	}
}

// TestANameIsReadAtOnce: 64 KiB are hashed (RFC 9580, section 3.7.1.3), as the existing operator's library has it.
func TestANameIsReadAtOnce(t *testing.T) {
	if n := body(t, encrypted(t, "Administrator"))[2+12]; n != 0x60 {
		t.Errorf("iterations %#x", n)
	}
}

func TestNamesThatAreNotEncrypted(t *testing.T) {
	for _, name := range []string{"", "a\nb", "a\x00", "\xff", strings.Repeat("x", maxName+1)} {
		if text, err := EncryptName(rand.Reader, name, key); err == nil {
			t.Errorf("%q: %q", name, text)
		}
	}
	if _, err := EncryptName(strings.NewReader(""), "Administrator", key); err == nil {
		t.Error("encrypted without randomness")
	}
}

// body is the message in an annotation.
func body(t *testing.T, text string) []byte {
	t.Helper()
	block, err := armor.Decode(strings.NewReader(firstLine + "\n\n" + strings.ReplaceAll(text, lineBreak, "\n") + "\n" + lastLine))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(block.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func armored(t *testing.T, message []byte) string {
	t.Helper()
	var out bytes.Buffer
	w, err := armor.EncodeWithChecksumOption(&out, blockType, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(message); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// iterations returns the annotation with another number of iterations, kind with another way to make a key. The first packet
// has two bytes of header, then version, cipher, kind, hash, eight bytes of salt, iterations.
func iterations(t *testing.T, text string, n byte) string {
	message := body(t, text)
	message[2+12] = n
	return armored(t, message)
}

func kind(t *testing.T, text string, k byte) string {
	message := body(t, text)
	message[2+2] = k
	return armored(t, message)
}

// argon2 is a message whose key is made with Argon2, as a node may write it.
func argon2(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	config := &packet.Config{S2KConfig: &s2k.Config{S2KMode: s2k.Argon2S2K, Argon2Config: &s2k.Argon2Config{NumberOfPasses: 1, DegreeOfParallelism: 1, Memory: 1 << 10}}, AEADConfig: &packet.AEADConfig{}}
	w, err := openpgp.SymmetricallyEncrypt(&out, []byte(passphrase), nil, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "Administrator"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return armored(t, out.Bytes())
}

func FuzzDecrypt(f *testing.F) {
	for _, name := range names {
		f.Add(encrypted(f, name))
	}
	f.Add(firstLine)
	f.Fuzz(func(t *testing.T, text string) {
		name, err := DecryptName(text, key)
		if (err == nil) != (name != "") || err != nil && !errors.Is(err, ErrUnreadable) {
			t.Errorf("%q, %v", name, err)
		}
	})
}
