// Package payloadtest makes folders of executables for tests, as make payload writes them.
package payloadtest

import (
	"cmp"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
	"wmco/payload"
	"wmco/payload/store"
)

// WriteFolder returns a folder with the executables of golden/payload, and others for those that are named. Root is the
// folder of this module.
func WriteFolder(t testing.TB, root string, others map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := Write(filepath.Join(root, "golden", "payload"), dir, "", others); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Write copies a folder of executables to another one, with others for those that are named, which are of a version
// unless that is empty.
func Write(from, to, version string, others map[string][]byte) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(to, store.ListFile))
	if err != nil {
		return err
	}
	list, err := store.Decode(data)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(store.Window))
	if err != nil {
		return err
	}
	defer encoder.Close() //nolint:errcheck // it has no writer
	for i, e := range list.Executables {
		raw, other := others[e.Name]
		if !other {
			continue
		}
		stored := encoder.EncodeAll(raw, nil)
		e.Raw, e.Stored, e.Version = blobOf(raw), blobOf(stored), cmp.Or(version, e.Version)
		if e.Name == payload.Agent {
			e.Path = payload.AgentPath(e.Raw.Digest)
		}
		list.Executables[i] = e
		if err := os.WriteFile(filepath.Join(to, e.File()), stored, 0o600); err != nil {
			return err
		}
	}
	if data, err = list.Encode(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, store.ListFile), data, 0o600)
}

func blobOf(data []byte) store.Blob {
	return store.Blob{Digest: bundle.Of(data), Size: int64(len(data))}
}

// ReleaseContents returns executables that take as many bytes as those of a release for one minor version of Kubernetes, in
// their stored form: 123 MB of random bytes, which cannot be compressed. Another version has others. divisor makes all of
// them smaller.
func ReleaseContents(version string, divisor int) map[string][]byte {
	kubelet, proxy := payload.For(payload.Kubelet, payload.TestedKubernetes).Name, payload.For(payload.KubeProxy, payload.TestedKubernetes).Name
	executables := map[string][]byte{}
	for name, size := range map[string]int{
		kubelet: 30_000_000, payload.Containerd: 20_000_000, payload.HybridOverlay: 17_000_000, proxy: 15_000_000, payload.Agent: 12_000_000, payload.Shim: 8_000_000,
		payload.Exporter: 5_600_000, payload.CSIProxy: 5_000_000, payload.WinOverlay: 3_000_000, payload.WinBridge: 3_000_000, payload.HostLocal: 2_600_000,
		payload.KubeLogRunner: 1_800_000,
	} {
		executables[name] = Random(version+" "+name, size/divisor)
	}
	return executables
}

// Random returns random bytes, the same ones for the same name.
func Random(name string, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name))).Read(data) // it returns no error
	return data
}
