package join_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/join"
	"wmco/payload/store"
)

// newerPayload returns a folder with the executables of golden/payload and another csi-proxy.
func newerPayload(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "golden", "payload"))))
	data, err := os.ReadFile(filepath.Join(dir, store.ListFile))
	must(t, err)
	list, err := store.Decode(data)
	must(t, err)
	encoder, err := zstd.NewWriter(nil)
	must(t, err)
	for i, e := range list.Executables {
		if e.Name != "csi-proxy" {
			continue
		}
		stored := encoder.EncodeAll([]byte(text), nil)
		list.Executables[i].Raw = store.Blob{Digest: bundle.Of([]byte(text)), Size: int64(len(text))}
		list.Executables[i].Stored = store.Blob{Digest: bundle.Of(stored), Size: int64(len(stored))}
		must(t, os.WriteFile(filepath.Join(dir, e.File()), stored, 0o600))
	}
	data, err = list.Encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, store.ListFile), data, 0o600))
	return dir
}

// TestANewOperatorBringsItsExecutables: the node runs on until they are on the host, and is of the new version when it has applied them.
func TestANewOperatorBringsItsExecutables(t *testing.T) {
	w := newWorld(t)
	m := w.machine("instance-u", "192.0.2.61")
	w.instances("192.0.2.61")
	stop := w.operate()
	eventually(t, "the node", func() bool { return w.joined("instance-u") })
	if n := w.node("instance-u"); n.Annotations[published.VersionAnnotation] != "test" || n.Annotations[published.DesiredVersionAnnotation] != "test" {
		t.Errorf("%v", n.Annotations)
	}
	stop()
	const text = "csi-proxy of the next release"
	next := w.settings()
	next.Version, next.Payload = "next", newerPayload(t, text)
	payload, err := store.Open(next.Payload)
	must(t, err)
	w.operateAs(next)
	eventually(t, "the new version", func() bool {
		n := w.node("instance-u")
		return n.Annotations[published.VersionAnnotation] == "next" && n.Annotations[published.DesiredVersionAnnotation] == "next" && n.Labels[published.UpgradingLabel] == ""
	})
	d, err := published.DecodeDesired(w.node("instance-u").Annotations[published.DesiredAnnotation])
	must(t, err)
	if d.Payload != payload.Set().Digest() {
		t.Errorf("the bundle is made with %s, the operator ships %s", d.Payload.Short(), payload.Set().Digest().Short())
	}
	eventually(t, "an event", func() bool {
		return len(w.events(join.EventPayloadCopied, "instance-u")) > 0
	})
	if got := m.Text(`C:\k\csi-proxy.exe`); got != text {
		t.Errorf("the executable on the host is %q", got)
	}
}
