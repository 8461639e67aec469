package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
	"wmco/payload"
)

// contents have several blocks of zstd.
var contents = map[string][]byte{
	kubelet:       bytes.Repeat([]byte("kubelet 0123456789 "), 50_000),
	payload.Agent: bytes.Repeat([]byte("wmco-node "), 7),
}

// kubelet is the executable of one of the minor versions.
const kubelet = "kubelet-1.36"

func blob(data []byte) Blob { return Blob{Digest: bundle.Of(data), Size: int64(len(data))} }

func compressed(t testing.TB, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeAll(data, nil)
}

func entry(t testing.TB, name string) (Entry, []byte) {
	t.Helper()
	x, raw := payload.Find(name), contents[name]
	stored := compressed(t, raw)
	e := Entry{Name: name, Path: x.Path, Module: x.Module, Version: x.Version, Go: "go1.26.8", Raw: blob(raw), Stored: blob(stored)}
	if name == payload.Agent {
		e.Path, e.Version = payload.AgentPath(e.Raw.Digest), "v1.2.3"
	}
	return e, stored
}

// folder writes a valid payload of two executables.
func folder(t testing.TB) (string, List) {
	t.Helper()
	dir := t.TempDir()
	list := List{Schema: Schema}
	for _, name := range []string{kubelet, payload.Agent} {
		e, stored := entry(t, name)
		list.Executables = append(list.Executables, e)
		write(t, filepath.Join(dir, e.File()), stored)
	}
	write(t, filepath.Join(dir, ListFile), encode(t, list))
	return dir, list
}

func encode(t testing.TB, l List) []byte {
	t.Helper()
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestContentsAreReturnedUnchanged(t *testing.T) {
	dir, list := folder(t)
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Executables {
		raw, err := s.Raw(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(raw)
		if err != nil || !bytes.Equal(data, contents[e.Name]) {
			t.Errorf("%s: %d bytes, %v", e.Name, len(data), err)
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
		stored, err := s.Stored(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		data, err = io.ReadAll(stored)
		if err != nil || blob(data) != stored.Blob || stored.Blob != e.Stored {
			t.Errorf("%s: %d stored bytes, %v", e.Name, len(data), err)
		}
		if err := stored.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Raw("kube-proxy"); !errors.Is(err, errUnknown) {
		t.Errorf("an executable that does not exist: %v", err)
	}
	set, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	storedOf := map[string]Blob{}
	for _, e := range s.Entries() {
		storedOf[e.Name] = e.Stored
	}
	want := payload.Set{Source: dir, Built: []payload.Built{
		{Name: kubelet, Version: payload.Find(kubelet).Version, Digest: bundle.Of(contents[kubelet]), Size: int64(len(contents[kubelet])), Stored: storedOf[kubelet]},
		{Name: payload.Agent, Version: "v1.2.3", Digest: bundle.Of(contents[payload.Agent]), Size: int64(len(contents[payload.Agent])), Stored: storedOf[payload.Agent]},
	}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryByteIsChecked changes each byte of a stored file, and cuts it at each.
func TestEveryByteIsChecked(t *testing.T) {
	dir, list := folder(t)
	for _, e := range list.Executables {
		path := filepath.Join(dir, e.File())
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 1
			write(t, path, bad)
			refuses(t, dir, e, "changed")
			write(t, path, good[:i])
			refuses(t, dir, e, "cut")
		}
		write(t, path, good)
	}
	if _, err := Read(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

func refuses(t *testing.T, dir string, e Entry, what string) {
	t.Helper()
	if _, err := Read(t.Context(), dir); !errors.As(err, new(*RefusedError)) {
		t.Fatalf("%s %s: %v", what, e.File(), err)
	}
	// Contents are checked without Verify as well.
	s := &Store{dir: dir, list: List{Schema: Schema, Executables: []Entry{e}}}
	for _, read := range []func(string) (*Content, error){s.Raw, s.Stored} {
		c, err := read(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(c)
		if err == nil && !bytes.Equal(data, contents[e.Name]) {
			t.Fatalf("%s %s was read without an error", what, e.File())
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFoldersThatDifferFromTheListAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string, list List)
		want   []string
	}{
		"an empty folder": {
			func(t *testing.T, dir string, _ List) {
				remove(t, dir, ListFile, "kubelet-1.36.exe.zst", "wmco-node.exe.zst")
			},
			[]string{"payload.json: is missing"},
		},
		"a missing file": {
			func(t *testing.T, dir string, _ List) { remove(t, dir, "kubelet-1.36.exe.zst") },
			[]string{"kubelet-1.36.exe.zst: is missing; build it again: make payload"},
		},
		"a missing and a foreign file": {
			func(t *testing.T, dir string, _ List) {
				remove(t, dir, "wmco-node.exe.zst")
				write(t, filepath.Join(dir, "setup.exe"), nil)
			},
			[]string{"setup.exe: is not in payload.json", "wmco-node.exe.zst: is missing"},
		},
		"a folder in place of a file": {
			func(t *testing.T, dir string, _ List) {
				remove(t, dir, "kubelet-1.36.exe.zst")
				if err := os.Mkdir(filepath.Join(dir, "kubelet-1.36.exe.zst"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"kubelet-1.36.exe.zst: is not a file"},
		},
		"a truncated file": {
			func(t *testing.T, dir string, list List) {
				if err := os.Truncate(filepath.Join(dir, "kubelet-1.36.exe.zst"), list.Executables[0].Stored.Size-1); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"kubelet-1.36.exe.zst: has "},
		},
		"another executable under the name": {
			func(t *testing.T, dir string, list List) {
				list.Executables[0].Stored = list.Executables[1].Stored
				_, stored := entry(t, payload.Agent)
				write(t, filepath.Join(dir, "kubelet-1.36.exe.zst"), stored)
				write(t, filepath.Join(dir, ListFile), encode(t, list))
			},
			[]string{"kubelet-1.36.exe.zst: is not what payload.json lists: it ends after 70 of 950000 bytes"},
		},
		"more than the listed size": {
			func(t *testing.T, dir string, list List) {
				list.Executables[0].Raw.Size = 10
				write(t, filepath.Join(dir, ListFile), encode(t, list))
			},
			[]string{"kubelet-1.36.exe.zst: is not what payload.json lists: it has more than 10 bytes"},
		},
		"a list of another version": {
			func(t *testing.T, dir string, list List) {
				data := strings.Replace(string(encode(t, list)), payload.Find(kubelet).Version, "v1.35.0", 1)
				write(t, filepath.Join(dir, ListFile), []byte(data))
			},
			[]string{`payload.json: checking "kubelet-1.36": it is k8s.io/kubernetes "v1.35.0", but this version of wmco ships k8s.io/kubernetes "` + payload.Find(kubelet).Version + `"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, list := folder(t)
			tt.change(t, dir, list)
			_, err := Read(t.Context(), dir)
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("error %v", err)
			}
			if len(refused.Problems) != len(tt.want) {
				t.Errorf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), filepath.Join(dir, want)) && !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
		})
	}
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListsInAnotherFormAreRefused(t *testing.T) {
	_, list := folder(t)
	good := string(encode(t, list))
	if _, err := Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"nothing":                          "",
		"no object":                        "[]\n",
		"an unknown field":                 strings.Replace(good, `"schema"`, `"extra": 1, "schema"`, 1),
		"a field twice":                    strings.Replace(good, `"schema": 1`, `"schema": 1, "schema": 1`, 1),
		"a newer schema":                   strings.Replace(good, `"schema": 1`, `"schema": 2`, 1),
		"an older schema":                  strings.Replace(good, `"schema": 1`, `"schema": 0`, 1),
		"something after":                  good + "{}",
		"another form":                     strings.ReplaceAll(good, "\n", ""),
		"an unknown program":               strings.ReplaceAll(good, `"kubelet-1.36"`, `"rootkit"`),
		"a way out":                        strings.ReplaceAll(good, `"name": "kubelet-1.36"`, `"name": "../kubelet"`),
		"a program and not its executable": strings.ReplaceAll(good, `"kubelet-1.36"`, `"kubelet"`),
		"another path":                     strings.ReplaceAll(good, `C:\\k\\kubelet.exe`, `C:\\Windows\\kubelet.exe`),
		"a bad digest":                     strings.Replace(good, "sha256:", "sha512:", 1),
		"a masked digest":                  strings.Replace(good, string(list.Executables[0].Raw.Digest), "masked", 1),
		"a negative size":                  strings.Replace(good, `"size": `, `"size": -`, 1),
		"a huge size":                      strings.Replace(good, `"size": `, `"size": 9999999`, 1),
		"no release of Go":                 strings.Replace(good, "go1.26.8", "gcc", 1),
	} {
		if l, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
	list.Executables = append(list.Executables, list.Executables[0])
	if _, err := list.Encode(); err == nil {
		t.Error("a name twice")
	}
}

// FuzzDecode checks that a list encodes to the bytes that it was read from, with names and paths of the table only.
func FuzzDecode(f *testing.F) {
	_, list := folder(f)
	f.Add(encode(f, list))
	f.Add(encode(f, List{Schema: Schema, Executables: []Entry{}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Decode(data)
		if err != nil {
			return
		}
		if got := encode(t, l); !bytes.Equal(got, data) {
			t.Errorf("%q becomes %q", data, got)
		}
		for _, e := range l.Executables {
			if payload.Find(e.Name).Name == "" || bundle.CheckPath(e.Path) != nil {
				t.Errorf("%+v", e)
			}
		}
	})
}
