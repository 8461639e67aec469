package bundle

import "testing"

func TestNearest(t *testing.T) {
	kinds := []string{"ImageDigestMirrorSet", "ImageTagMirrorSet", "Image", "Proxy", "Node"}
	for word, want := range map[string]string{
		"ImageDigestMirorSet": "ImageDigestMirrorSet", "imagetagmirrorset": "ImageTagMirrorSet", "ImageDigestMirrorSets": "ImageDigestMirrorSet",
		"Images": "Image", "Porxy": "Proxy", "Nodes": "Node", "Deployment": "", "Build": "", "": "", "MachineSet": "", "x": "",
	} {
		if got := NearestWord(word, kinds); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("maxUnavailabel", []string{"maxUnavailable", "paused"}); got != "; did you mean maxUnavailable?" {
		t.Error(got)
	}
}
