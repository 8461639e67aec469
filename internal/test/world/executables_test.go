package world

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/gather"
	"wmco/internal/hostsim"
	"wmco/internal/test/payloadtest"
	"wmco/payload"
	"wmco/payload/store"
)

// release is a version of the operator with the executables that it brings. Its Pod has its image.
type release struct {
	version, pod, image string
	set                 payload.Set
	contents            *archive.Contents
	source              archive.Source
	// files are what nodes of the example cluster have, by the minor version of Kubernetes and their paths.
	files map[string]map[string][]byte
}

// present is the release that works, or worked last.
func (w *world) present() release { return w.releases[w.released] }

// addReleases adds the two releases between which operators are exchanged, with their Pods. The first one is that of the example's nodes. Both are the
// program of this module: what another program would publish is not here.
func (w *world) addReleases(t testing.TB) {
	t.Helper()
	others := map[string][]byte{}
	for _, name := range []string{payload.For(payload.Kubelet, payload.TestedKubernetes).Name, payload.Containerd, payload.HybridOverlay, payload.CSIProxy, payload.Agent} {
		others[name] = []byte("of the next release: " + name)
	}
	for i, folder := range []string{filepath.Join(root, "golden", "payload"), payloadtest.WriteFolder(t, root, others)} {
		r, err := readRelease(folder)
		must(t, err)
		r.version, r.pod = []string{"11.0.0-9f27c41", "11.1.0-0c5d2aa"}[i], fmt.Sprintf("operator-%d", i)
		digest, err := w.registries.images.AddImage(folder)
		must(t, err)
		r.image = "registry-0.example.com/windows/operator@" + digest
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: r.pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator"}}}}
		must(t, w.Create(w.ctx, p))
		before := client.MergeFrom(p.DeepCopy())
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Image: "operator", ImageID: r.image}}
		must(t, w.Status().Patch(w.ctx, p, before))
		w.releases = append(w.releases, r)
	}
}

// readRelease reads all of a folder with executables.
func readRelease(folder string) (release, error) {
	s, err := store.Open(folder)
	if err != nil {
		return release{}, err
	}
	r := release{set: s.Set(), contents: archive.NewContents(s.Source()), source: s.Source(), files: map[string]map[string][]byte{}}
	for _, k := range kubernetes() {
		r.files[k.Minor] = map[string][]byte{}
		for _, b := range r.set.For(k.Minor).Built {
			if !payload.Find(b.Name).Serves(bundle.PlatformNone) || b.Name == payload.Verifier {
				continue
			}
			path := payload.Find(b.Name).Path
			if b.Name == payload.Agent {
				path = payload.AgentPath(b.Digest)
			}
			if r.files[k.Minor][path], err = readRaw(s, b.Name); err != nil {
				return release{}, err
			}
		}
	}
	return r, nil
}

func readRaw(s *store.Store, name string) ([]byte, error) {
	r, err := s.OpenRaw(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// digest is that of all executables which nodes get in a cluster of a minor version of Kubernetes.
func (r release) digest(minor string) bundle.Digest { return r.set.For(minor).Digest() }

// has reports whether executables are those of this release for a minor version of Kubernetes.
func (r release) has(executables bundle.Digest) bool {
	return slices.ContainsFunc(kubernetes(), func(k payload.Release) bool { return r.digest(k.Minor) == executables })
}

// put writes its executables to a host, in the place of those that a light node has at first.
func (r release) put(ctx context.Context, h *hostsim.Memory, minor string) error {
	for _, x := range payload.ProgramsFor(payload.TestedKubernetes) {
		h.Discard(x.Path)
	}
	for path, data := range r.files[minor] {
		if err := h.WriteFile(ctx, path, bundle.AccessUsers, data); err != nil {
			return err
		}
	}
	return nil
}

// checkExecutables checks that hosts have executables alone that an operator has signed for their nodes.
func (w *world) checkExecutables() {
	nodes := w.observer.Snapshot()
	for _, m := range w.named(func(*machine) bool { return true }) {
		n, ok := nodes[m.name]
		if !ok {
			continue
		}
		w.trail.mu.Lock()
		signed := w.trail.node(n.UID).payloads
		may := map[string]map[bundle.Digest]bool{}
		for _, r := range w.releases {
			for minor, of := range r.files {
				for path, data := range of {
					if may[path] == nil {
						may[path] = map[bundle.Digest]bool{}
					}
					joined := m.joined == joined{r.version, minor}
					may[path][bundle.Of(data)] = may[path][bundle.Of(data)] || signed[r.digest(minor)] || joined
				}
			}
		}
		w.trail.mu.Unlock()
		files := m.Host.Snapshot().Files
		for path, digests := range may {
			if f, there := files[path]; there && !digests[f.Digest] {
				w.observer.Violate(ruleExecutables, "%s has %s with %s", m.name, path, f.Digest.Short())
			}
		}
	}
}
