package configure

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// TestWhichNodesWaitForTheirImages: new ones whose agents pull them, until they are there, and never for long.
func TestWhichNodesWaitForTheirImages(t *testing.T) {
	list := bundle.Of([]byte("list"))
	withList := bundle.Bundle{Cluster: bundle.Layer{Files: []bundle.File{{Path: `C:\k\kubelet.conf`, Digest: bundle.Of(nil)}, {Path: bundle.PinnedImagesFile, Digest: list}}}}
	pulling := published.ImageProgress{List: list, Wanted: 5, Present: 2}
	for name, c := range map[string]struct {
		bundle   bundle.Bundle
		change   func(*windowsnode.Node)
		waited   time.Duration
		progress published.ImageProgress
		waits    bool
		text     string
	}{
		"images are pulled":             {bundle: withList, progress: pulling, waits: true, text: "2 of 5"},
		"one is refused":                {bundle: withList, progress: published.ImageProgress{List: list, Wanted: 5, Present: 4, Message: "a: denied"}, waits: true, text: "4 of 5; a: denied"},
		"the agent has not begun":       {bundle: withList, waits: true, text: "the node agent has not started"},
		"it is about an earlier list":   {bundle: withList, progress: published.ImageProgress{List: bundle.Of(nil), Wanted: 1, Present: 1, Settled: true}, waits: true, text: "1 of 1"},
		"all are there":                 {bundle: withList, progress: published.ImageProgress{List: list, Wanted: 5, Present: 5}, text: "5 of 5"},
		"the agent has given up":        {bundle: withList, progress: published.ImageProgress{List: list, Wanted: 5, Present: 4, Settled: true}, text: "4 of 5"},
		"no images are wanted":          {progress: pulling, text: "2 of 5"},
		"the agent is older":            {bundle: withList, change: func(n *windowsnode.Node) { n.Report.Features = published.Features() }, text: "the node agent has not started"},
		"the cordon is another":         {bundle: withList, progress: pulling, change: func(n *windowsnode.Node) { delete(n.Annotations, JoiningAnnotation) }, text: "2 of 5"},
		"it has waited for long":        {bundle: withList, progress: pulling, waited: imagesWithin, text: "2 of 5"},
		"it has not waited for so long": {bundle: withList, progress: pulling, waited: imagesWithin - time.Second, waits: true, text: "2 of 5"},
		"an earlier Node has":           {bundle: withList, progress: pulling, waited: imagesWithin, change: func(n *windowsnode.Node) { n.UID = "another" }, waits: true, text: "2 of 5"},
	} {
		n := windowsnode.Decode(corev1.Node{})
		n.ObjectMeta = metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{JoiningAnnotation: ValueTrue}}
		n.Report = published.Report{Features: append(published.Features(), published.FeaturePinnedImages), Images: c.progress}
		if c.change != nil {
			c.change(&n)
		}
		now := time.Hour
		h := Host{Joiner: &Joiner{Elapsed: func() time.Duration { return now }}}
		h.pulling.SeenFor("win-a", "", now)
		now += c.waited
		if got := h.awaitsImages(n, c.bundle); got != c.waits {
			t.Errorf("%s: waits %t", name, got)
		}
		if got := describeImages(n.Report.Images); got != c.text {
			t.Errorf("%s: %q, want %q", name, got, c.text)
		}
	}
}

func TestAJoinSaysWhichImagesAreMissing(t *testing.T) {
	if got := describeJoined(nodeWithImages(published.ImageProgress{})); got != "node win-a has joined" {
		t.Error(got)
	}
	if got := describeJoined(nodeWithImages(published.ImageProgress{Wanted: 5, Present: 3})); got != "node win-a has joined, without 2 of 5 pinned images" {
		t.Error(got)
	}
}

// nodeWithImages is a node whose agent reports how far it is with its images.
func nodeWithImages(images published.ImageProgress) windowsnode.Node {
	n := windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}})
	n.Report.Images = images
	return n
}
