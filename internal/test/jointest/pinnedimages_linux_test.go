package jointest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/agent/images"
	"wmco/bundle"
	"wmco/bundle/nodestate"
)

// machineImages is the container runtime of a machine: pulls wait until they are let go.
type machineImages struct {
	mu      sync.Mutex
	present map[string]bool
	pinned  map[string]bool
	refused map[string]bool
	gate    chan struct{}
}

func (m *machineImages) FindImage(_ context.Context, name string) (images.Image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return images.Image{Present: m.present[name], Pinned: m.pinned[name]}, nil
}

func (m *machineImages) PullImage(ctx context.Context, name string, auth bundle.Secret) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.gate:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused[name] || auth.Reveal() != base64.StdEncoding.EncodeToString([]byte("example-user:example-password")) { // golden/clusters/common
		return errors.New("denied")
	}
	m.present[name] = true
	return nil
}

func (m *machineImages) PinImage(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pinned[name] = true
	return nil
}

func (m *machineImages) ListPinned(context.Context) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range maps.Keys(m.pinned) {
		names = append(names, name)
	}
	return names, nil
}

func (m *machineImages) UnpinImage(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pinned, name)
	return nil
}

func (*machineImages) DiskSpace(context.Context) (images.Disk, error) {
	return images.Disk{Size: 100 << 30, Free: 90 << 30}, nil
}

func (m *machineImages) pins(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pinned[name]
}

// TestANewNodeIsUncordonedWithItsPinnedImages, pulled with the credentials of the pull secret, with how many are there in the status, and one that cannot be pulled does not keep it for ever. A set
// that comes later cordons nothing, and with the sets goes what was pinned.
func TestANewNodeIsUncordonedWithItsPinnedImages(t *testing.T) {
	w := newWorld(t)
	const address = "192.0.2.50"
	image := func(name string) string {
		return "registry.example.com/team/" + name + "@sha256:" + strings.Repeat("1f", 32)
	}
	runtime := &machineImages{present: map[string]bool{}, pinned: map[string]bool{}, refused: map[string]bool{}, gate: make(chan struct{})}
	w.images = runtime
	set := func(name, system string, names ...string) *mcfgv1.PinnedImageSet {
		s := &mcfgv1.PinnedImageSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"machineconfiguration.openshift.io/role": "worker", "node.openshift.io/os_id": system}}}
		for _, n := range names {
			s.Spec.PinnedImages = append(s.Spec.PinnedImages, mcfgv1.PinnedImageRef{Name: mcfgv1.ImageDigestFormat(image(n))})
		}
		w.create(s)
		return s
	}
	base := set("base", "Windows", "nanoserver", "servercore")
	set("release", "rhcos", "release")
	w.machine("instance-images", address)
	w.instances(address)
	w.operate()
	row := func(message string) func() bool {
		return func() bool {
			h := w.host("instance-images")
			if h.Name == "" {
				h = w.host(address)
			}
			return h.State == nodestate.Joining && strings.HasSuffix(h.Message, message)
		}
	}
	eventually(t, "the node that waits for its images", row(": 0 of 2"))
	runtime.gate <- struct{}{}
	eventually(t, "the node with the first image", row(": 1 of 2"))
	if n := w.node("instance-images"); !n.Spec.Unschedulable {
		t.Fatal("the node is uncordoned before its images are there")
	}
	runtime.mu.Lock()
	runtime.refused[image("servercore")] = true
	runtime.mu.Unlock()
	close(runtime.gate)
	eventually(t, "the node that says why", row(": 1 of 2; "+image("servercore")+": denied"))
	if !w.node("instance-images").Spec.Unschedulable {
		t.Fatal("the node is uncordoned after the first failure")
	}
	runtime.mu.Lock()
	delete(runtime.refused, image("servercore"))
	runtime.mu.Unlock()
	w.allJoin([]string{"instance-images"})
	if w.node("instance-images").Spec.Unschedulable || !runtime.pins(image("nanoserver")) || !runtime.pins(image("servercore")) || runtime.pins(image("release")) {
		t.Errorf("cordoned %t, pinned %v", w.node("instance-images").Spec.Unschedulable, runtime.pinned)
	}

	later := set("later", "Windows", "dotnet")
	eventually(t, "the image of another set", func() bool { return runtime.pins(image("dotnet")) })
	if w.node("instance-images").Spec.Unschedulable {
		t.Error("a node that has joined is cordoned for an image")
	}
	must(t, w.Delete(t.Context(), base))
	eventually(t, "the end of the pins of a set", func() bool { return !runtime.pins(image("servercore")) && runtime.pins(image("dotnet")) })
	must(t, w.Delete(t.Context(), later))
	eventually(t, "the end of all pins", func() bool { return !runtime.pins(image("dotnet")) })
	if text, err := w.machines["instance-images"].ReadFile(bundle.PinnedImagesFile); err == nil {
		t.Errorf("the host keeps the list %s", text)
	}
}
