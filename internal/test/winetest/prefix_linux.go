package winetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variable is the environment variable with the folder of the Debian that has Wine.
const Variable = "WMCO_WINE"

// Prefix is the Windows of one test.
type Prefix struct {
	folder  string
	machine *machine
	started []*Process
}

// New returns a new Windows Server 2022 (10.0.20348), which ends with the test. It skips the test if there is no Wine.
func New(t testing.TB) *Prefix {
	t.Helper()
	return newFor(t, NetworkOfHost)
}

// NewAlone is New with NetworkAlone.
func NewAlone(t testing.TB) *Prefix {
	t.Helper()
	return newFor(t, NetworkAlone)
}

func newFor(t testing.TB, network Network) *Prefix {
	t.Helper()
	root := os.Getenv(Variable)
	if root != "" && os.Geteuid() != 0 {
		t.Skip("not root: Wine runs in a folder of its own")
	}
	// The program is a link whose target exists only inside of the machine.
	if _, err := os.Lstat(filepath.Join(root, program)); root == "" || err != nil {
		t.Skip("no Wine 10: make wine")
	}
	p, err := Open(t.Context(), root, network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Open is New for programs that are not tests. The root is the folder that `make wine` installed.
func Open(ctx context.Context, root string, network Network) (*Prefix, error) {
	from, err := ensureTemplate(ctx, root)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(filepath.Dir(from), "clone-")
	if err != nil {
		return nil, err
	}
	if err := cloneTemplate(from, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	m, err := start(root, folder, network)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := m.bootWindows(ctx); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return &Prefix{folder: folder, machine: m}, nil
}

// Close ends every program and removes the drive.
func (p *Prefix) Close() error { return p.machine.stop() }

// Path returns the Linux path of a file on the drive C:, such as C:\k\kubelet.exe. Linux paths depend on case, those of
// Windows do not: Wine's own files are in lower case.
func (p *Prefix) Path(windows string) string {
	rest, ok := strings.CutPrefix(windows, `C:\`)
	if !ok {
		panic("not a path on C:\\: " + windows)
	}
	return filepath.Join(p.folder, "drive_c", strings.ReplaceAll(rest, `\`, "/"))
}

// WriteFile writes a file that the programs may change or remove, and creates the folders above it.
func (p *Prefix) WriteFile(t testing.TB, windows string, data []byte) {
	t.Helper()
	if err := p.write(windows, data); err != nil {
		t.Fatal(err)
	}
}

func (p *Prefix) write(windows string, data []byte) error {
	if err := p.mkdir(windows); err != nil {
		return err
	}
	path := p.Path(windows)
	// An existing file may be shared with other tests.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		return err
	}
	return os.Lchown(path, user, user)
}

// ReadFile returns the contents of a file.
func (p *Prefix) ReadFile(t testing.TB, windows string) []byte {
	t.Helper()
	data, err := os.ReadFile(p.Path(windows))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mkdir creates the folders above a file.
func (p *Prefix) mkdir(windows string) error {
	parts := strings.Split(windows, `\`)
	for i := 2; i < len(parts); i++ {
		folder := p.Path(strings.Join(parts[:i], `\`))
		err := os.Mkdir(folder, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Lchown(folder, user, user)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
