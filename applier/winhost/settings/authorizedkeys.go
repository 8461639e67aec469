package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// keysFile is bundle.AuthorizedKeysFile. Where the host has no folder for it, or a link or something too large in its
// place, every call returns applier.ErrNoSetting.
type keysFile interface {
	// readKeys returns the file, nil if there is none, and whether it is as sshd wants it (keysProtected).
	readKeys(ctx context.Context) (text []byte, protected bool, err error)
	// writeKeys replaces the file, for SYSTEM and Administrators alone and with nothing inherited.
	writeKeys(ctx context.Context, text []byte) error
}

// keysProtected reports whether sshd reads the file: it refuses all keys of one that is owned by others than SYSTEM,
// Administrators, the installer of Windows or the user who logs in, or that others may write
// (github.com/PowerShell/openssh-portable, contrib/win32/win32compat/w32-sshfileperm.c, check_secure_file_permission;
// the access that it should have is that of Microsoft Learn, "Key-based authentication in OpenSSH for Windows"). A file
// of the user who logs in is no exception here: that user could change it, and other administrators could not log in.
// An owner may always change the access, so the owner counts whatever the access is.
func keysProtected(file plan.FileInfo) bool { return file.IsTrusted() }

// errForeignKeys is why keys stay as they are.
var errForeignKeys = errors.New("it belongs to another user than Administrators and SYSTEM (fix: check its contents, then delete it)")

// checkKeysOwners returns why the keys are neither read nor written: the folder or the file is that of another user,
// who has written its contents. sshd refuses such a file, and would let in whoever has one of its keys if it were given
// the right owner.
func checkKeysOwners(folder, file plan.FileInfo) error {
	for _, f := range []plan.FileInfo{folder, file} {
		if f.Kind != plan.FileAbsent && f.Owner == plan.OwnerOther {
			return fmt.Errorf("%s: %w", f.Path, errForeignKeys)
		}
	}
	return nil
}

// authorizedKeysKeeper keeps bundle.KindAuthorizedKey. It changes the lines of the keys that it is asked about and no
// others.
type authorizedKeysKeeper struct{ file keysFile }

// otherAccess is the value of a key in a file that others may change or read: no bundle has it, so that the file is
// written again.
const otherAccess = "in a file to which others have access"

func (k authorizedKeysKeeper) Read(ctx context.Context, names []string) ([]plan.Setting, error) {
	text, protected, err := k.file.readKeys(ctx)
	if err != nil {
		return nil, err
	}
	lines := map[string]string{}
	for line := range bytes.Lines(text) {
		if key, fingerprint, ok := keyOfLine(string(line)); ok {
			lines[fingerprint] = key
		}
	}
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		key, ok := lines[name]
		if ok && !protected {
			key = otherAccess
		}
		all[i] = plan.Setting{Present: ok, Value: key}
	}
	return all, nil
}

func (k authorizedKeysKeeper) Write(ctx context.Context, s plan.Setting) error {
	if fingerprint, err := bundle.Fingerprint(s.Value); s.Present && (err != nil || fingerprint != s.Name) {
		return fmt.Errorf("the value is not the public key with the fingerprint %s", s.Name)
	}
	text, protected, err := k.file.readKeys(ctx)
	if err != nil {
		return err
	}
	changed := withoutKey(text, s.Name)
	if s.Present {
		changed = withKey(text, s)
	}
	if bytes.Equal(changed, text) && (protected || !s.Present) {
		return nil
	}
	return k.file.writeKeys(ctx, changed)
}

// withKey returns the text with a line for a key. A line that has the key already stays: its options and its comment
// are the administrator's.
func withKey(text []byte, s plan.Setting) []byte {
	for line := range bytes.Lines(text) {
		if _, fingerprint, ok := keyOfLine(string(line)); ok && fingerprint == s.Name {
			return text
		}
	}
	text = slices.Clone(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\r', '\n')
	}
	return append(text, s.Value+"\r\n"...)
}

// withoutKey returns the text without all lines of a key, whatever options they have. All other bytes stay.
func withoutKey(text []byte, name string) []byte {
	var left []byte
	for line := range bytes.Lines(text) {
		if _, fingerprint, ok := keyOfLine(string(line)); !ok || fingerprint != name {
			left = append(left, line...)
		}
	}
	return left
}

// keyOfLine returns the key of a line of an authorized_keys file, "ALGORITHM BASE64", and its fingerprint. Options may
// stand before it, which have blanks in quotes only, and a comment after it (man.openbsd.org/sshd, "AUTHORIZED_KEYS
// FILE FORMAT").
func keyOfLine(line string) (key, fingerprint string, ok bool) {
	line = strings.TrimPrefix(line, "\ufeff") // Set-Content of PowerShell 5 -Encoding UTF8 begins a file with it, and sshd skips it
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return "", "", false
	}
	fields := fieldsOfLine(line)
	for i := range min(len(fields)-1, 2) {
		key := fields[i] + " " + fields[i+1]
		if fingerprint, err := bundle.Fingerprint(key); err == nil {
			return key, fingerprint, true
		}
	}
	return "", "", false
}

// fieldsOfLine splits a line at blanks that are not in quotes; a quote after a backslash is none.
func fieldsOfLine(line string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' && !escaped {
			quoted = !quoted
		}
		escaped = r == '\\' && !escaped
		return !quoted && (r == ' ' || r == '\t' || r == '\r' || r == '\n')
	})
}
