package settings

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/files"
	"wmco/bundle"
)

// sshFolder is the folder of OpenSSH on this host.
type sshFolder struct{ files files.Files }

// AuthorizedKeys returns the Keeper of bundle.KindAuthorizedKey, which reads and writes through these files.
func AuthorizedKeys(f files.Files) Keeper { return authorizedKeysKeeper{sshFolder{f}} }

// maxKeysFile is the size of the largest file that is read, in bytes: 300 keys of 16,384 bits.
const maxKeysFile = 1 << 20

func (s sshFolder) readKeys(ctx context.Context) (text []byte, protected bool, err error) {
	there, err := s.files.Stat(ctx, []string{bundle.AuthorizedKeysFolder, bundle.AuthorizedKeysFile})
	if err != nil {
		return nil, false, err
	}
	folder, file := there[0], there[1]
	if err := checkKeysOwners(folder, file); err != nil {
		return nil, false, err
	}
	switch {
	case folder.Kind != plan.FileDirectory || file.Kind != plan.FileRegular && file.Kind != plan.FileAbsent || file.Size > maxKeysFile:
		return nil, false, applier.ErrNoSetting
	case file.Kind == plan.FileAbsent:
		return nil, true, nil
	}
	f, err := s.files.Open(ctx, bundle.AuthorizedKeysFile)
	if err != nil {
		return nil, false, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	if text, err = io.ReadAll(io.LimitReader(f, maxKeysFile)); err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", bundle.AuthorizedKeysFile, err)
	}
	return text, keysProtected(file), nil
}

func (s sshFolder) writeKeys(ctx context.Context, text []byte) error {
	return s.files.Write(ctx, bundle.AuthorizedKeysFile, bundle.AccessAdmins, bytes.NewReader(text))
}
