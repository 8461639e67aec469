package mirrors

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestKeysThatKubeletsUse are those of the table that internal/verify/consumers holds to the real kubelet.
func TestKeysThatKubeletsUse(t *testing.T) {
	data, err := os.ReadFile("testdata/kubelet-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		r := Result{KubeletCredentials: []KubeletCredential{{Key: words[0]}}}
		if got := len(r.kubeletKeys(words[1])) > 0; got != (words[2] == "yes") {
			t.Errorf("%q for %s: %v", words[0], words[1], got)
		}
	}
}

// TestPullsOfAnImage: its places in their order, each with the entries that are sent there.
func TestPullsOfAnImage(t *testing.T) {
	in := mirrored(auths("quay.io/org", encoded("u:p"), "m.io", encoded("m:p"), "r.io", encoded("r:p"), "r.io/a", encoded("a:p"), "*.io", encoded("w:p"), "me:hunter2@x.com", encoded("x:p")), "m.io")
	in.Sets = idms("quay.io m.io n.io")
	r := Build(in, Options{PartialNever: Closed, PullSecretOnNodes: true})
	for image, want := range map[string][]string{
		"quay.io/org/app@sha256:" + strings.Repeat("a", 64): {"https://m.io/v2 m.io", "https://n.io/v2 kubelet", "https://quay.io/v2 kubelet"},
		"quay.io/org/app:1": {"https://m.io/v2 contents m.io", "https://n.io/v2 contents kubelet", "https://quay.io/v2 kubelet"},
		"r.io/a/b:1":        {"https://r.io/v2 kubelet r.io/a r.io"},
		"x.com/a:1":         {"https://x.com/v2 kubelet " + bundle.MaskedText + "@x.com"},
		"y.com/a:1":         {"https://y.com/v2 kubelet"},
	} {
		var got []string
		for _, p := range r.Pulls(in, image) {
			words := []string{p.URL}
			if p.ContentsOnly {
				words = append(words, "contents")
			}
			if p.FromKubelet {
				words = append(words, "kubelet")
			}
			got = append(got, strings.Join(slices.Concat(words, p.Keys), " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}
