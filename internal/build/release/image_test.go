package release

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"wmco/payload"
	"wmco/payload/store"
)

// kubelet is the executable of one of the minor versions.
const kubelet = "kubelet-1.36"

const examplePayload = "../../../golden/payload"

// version is that of the agent in the example payload.
const version = "v1.0.0"

// example is an image with small programs and the example payload, which has no bills of materials.
func example(t *testing.T) Image {
	t.Helper()
	i := Image{
		Labels:  Labels{Version: version, Revision: "0123456", Source: "https://example.com/wmco", Created: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)},
		Payload: examplePayload, Bills: filepath.Join(t.TempDir(), "none"), License: "../../../LICENSE", AllowMissing: true,
	}
	for _, arch := range []string{"arm64", "amd64"} {
		i.Programs = append(i.Programs, compile(t, "linux", arch))
		shell := compile(t, "linux", arch)
		shell.Name = "shell"
		i.Shells = append(i.Shells, shell)
	}
	return i
}

// built is where the programs of tests are.
var built string

func TestMain(m *testing.M) { os.Exit(buildOnce(m)) }

func buildOnce(m *testing.M) int {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	built = dir
	return m.Run()
}

// compile returns a program for a platform. It is built once.
func compile(t *testing.T, system, arch string) Program {
	t.Helper()
	p := Program{OS: system, Arch: arch, Path: filepath.Join(built, system+"-"+arch)}
	if exists(p.Path) {
		return p
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", p.Path, "./testdata/program")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return p
}

func write(t *testing.T, i Image) (dir string, digest v1.Hash) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "image")
	digest, err := i.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, digest
}

func TestTheSameInputsGiveTheSameImage(t *testing.T) {
	i := example(t)
	_, first := write(t, i)
	slices.Reverse(i.Programs)
	dir, second := write(t, i)
	if first != second {
		t.Errorf("%s, then %s", first, second)
	}
	// A folder that has an image already holds only the new one afterwards.
	i.Labels.Revision = "another"
	third, err := i.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := index.Digest(); digest != third || third == second || err != nil {
		t.Errorf("%s, %v, before %s", digest, err, second)
	}
}

func TestImage(t *testing.T) {
	dir, _ := write(t, example(t))
	read, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(read); err != nil {
		t.Error(err)
	}
	found, err := read.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "localhost/windows-machine-config-operator:" + version}
	if got := found.Manifests[0].Annotations; !maps.Equal(got, names) {
		t.Errorf("the image is named %v", got)
	}
	index, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"org.opencontainers.image.title": title, "org.opencontainers.image.description": description, "org.opencontainers.image.version": version,
		"org.opencontainers.image.revision": "0123456", "org.opencontainers.image.source": "https://example.com/wmco",
		"org.opencontainers.image.created": "2026-11-22T12:00:00Z", "org.opencontainers.image.licenses": "Apache-2.0",
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(manifest.Annotations, want) {
		t.Errorf("annotations %v", manifest.Annotations)
	}
	for _, d := range manifest.Manifests {
		if d.ArtifactType != "" { // skopeo would write the index again
			t.Errorf("%s has artifactType %s", d.Digest, d.ArtifactType)
		}
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image, err := For(index, platform)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS+"/"+config.Architecture != platform || config.Config.User != user || config.Config.Entrypoint[0] != Operator {
			t.Errorf("%s: %+v", platform, config)
		}
		if !config.Created.Equal(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("created %s", config.Created)
		}
		for name, value := range want {
			if config.Config.Labels[name] != value {
				t.Errorf("%s: label %s is %q", platform, name, config.Config.Labels[name])
			}
		}
	}
	if _, err := For(index, "linux/s390x"); err == nil {
		t.Error("an image for a platform that it has no program for")
	}
}

func TestTheFilesOfTheImage(t *testing.T) {
	i := example(t)
	dir, _ := write(t, i)
	root := filepath.Join(t.TempDir(), "root")
	if err := Unpack(dir, "linux/amd64", root); err != nil {
		t.Fatal(err)
	}
	// What make payload wrote is a valid payload there too, byte for byte.
	set, err := store.Read(t.Context(), filepath.Join(root, PayloadDir))
	if err != nil || len(set.Missing()) > 0 {
		t.Error(err, set.Missing())
	}
	for name, want := range map[string]string{Gather: "wmco", "/bin": "usr/bin", "/usr/bin/sleep": "bash", "/usr/bin/tar": "bash"} {
		if link, err := os.Readlink(filepath.Join(root, name)); link != want || err != nil {
			t.Errorf("%s leads to %q, %v", name, link, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "bash")); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(root, Operator))
	if err != nil || info.Mode().Perm() != modeProgram {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, Operator)).Output()
	if err != nil || string(out) != "started\n" {
		t.Errorf("%q, %v", out, err)
	}
	// With a read-only file system and any user, nothing but temporary folders is writable, and everything is readable.
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if info.Mode()&0o004 == 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// folder copies the example payload without some executables.
func folder(t *testing.T, without ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "payload")
	if err := os.CopyFS(dir, os.DirFS(examplePayload)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, store.ListFile))
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	list.Executables = slices.DeleteFunc(list.Executables, func(e store.Entry) bool { return slices.Contains(without, e.Name) })
	if data, err = list.Encode(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.ListFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range without {
		if err := os.Remove(filepath.Join(dir, store.FileOf(name))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPayloadsThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*testing.T, *Image)
		want   []string
	}{
		"executables that were not built": {
			func(t *testing.T, i *Image) {
				i.Payload, i.AllowMissing = folder(t, payload.CloudManager, kubelet), false
				i.Bills = billsFor(t, i.Payload)
			},
			[]string{"azure-cloud-node-manager is missing, which nodes on Azure need", "kubelet-1.36 is missing, which nodes on every platform with Kubernetes 1.36 need"},
		},
		"an agent of another version": {
			func(_ *testing.T, i *Image) { i.Labels.Version = "v2.0.0" },
			[]string{`wmco-node is of version "v1.0.0", and the release "v2.0.0" (fix: make payload PAYLOAD=wmco-node VERSION=v2.0.0)`},
		},
		"no bill of materials": {
			func(t *testing.T, i *Image) {
				i.AllowMissing, i.Bills = false, billsFor(t, i.Payload)
				if err := os.Remove(filepath.Join(i.Bills, kubelet+".cdx.json")); err != nil {
					t.Fatal(err)
				}
			},
			[]string{kubelet + " has no bill of materials"},
		},
		"the bill of materials of another build": {
			func(t *testing.T, i *Image) {
				i.Bills = billsFor(t, i.Payload)
				if err := os.Rename(filepath.Join(i.Bills, kubelet+".cdx.json"), filepath.Join(i.Bills, "containerd.cdx.json")); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"is the bill of materials of another build of containerd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := example(t)
			tt.change(t, &i)
			dir := filepath.Join(t.TempDir(), "image")
			_, err := i.Write(dir)
			var refused *RefusedError
			if !errors.As(err, &refused) || len(refused.Problems) != len(tt.want) {
				t.Fatalf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
			if exists(dir) {
				t.Error("there is an image")
			}
		})
	}
}

// billsFor writes the smallest bills of materials of a payload.
func billsFor(t *testing.T, dir string) string {
	t.Helper()
	opened, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	bills := t.TempDir()
	for _, e := range opened.Entries() {
		data, err := json.Marshal(map[string]any{
			"bomFormat": "CycloneDX", "specVersion": "1.6",
			"metadata": map[string]any{"component": map[string]any{
				"bom-ref": e.Name, "type": "application", "name": e.Name,
				"hashes": []any{map[string]string{"alg": "SHA-256", "content": strings.TrimPrefix(string(e.Raw.Digest), "sha256:")}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bills, billOf(e.Name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bills
}

func TestWhatIsAllowedToBeMissing(t *testing.T) {
	i := example(t)
	i.Payload = folder(t, payload.CloudManager)
	write(t, i)
	lacks, err := i.Lacks()
	if err != nil || !slices.Equal(lacks, []string{"azure-cloud-node-manager: no node on Azure can join"}) {
		t.Errorf("%q, %v", lacks, err)
	}
}

func TestBillsOfMaterialsAreInTheImage(t *testing.T) {
	i := example(t)
	i.Bills, i.AllowMissing = billsFor(t, i.Payload), false
	dir, digest := write(t, i)
	root := filepath.Join(t.TempDir(), "root")
	if err := Unpack(dir, "linux/arm64", root); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(root, BillsDir))
	if err != nil || len(files) != len(payload.Table()) {
		t.Errorf("%d files, %v", len(files), err)
	}
	data, err := i.Bill(digest.String())
	if err != nil {
		t.Fatal(err)
	}
	bill, err := decodeBill(data)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, c := range *bill.Components {
		have[c.BOMRef] = true
	}
	for _, want := range []string{"wmco-linux-amd64", "wmco-linux-arm64", "shell-linux-arm64", kubelet, "pkg:golang/wmco/internal/build/release@(devel)"} {
		if !have[want] {
			t.Errorf("the bill of the image lacks %s", want)
		}
	}
}

func TestProgramsForAnotherPlatformAreRefused(t *testing.T) {
	i := example(t)
	i.Programs[0].Path = i.Programs[1].Path
	if _, err := i.Write(filepath.Join(t.TempDir(), "image")); err == nil || !strings.Contains(err.Error(), "is no program for linux/arm64: it was built with GOARCH=amd64") {
		t.Error(err)
	}
}
