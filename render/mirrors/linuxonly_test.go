package mirrors

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestSourcesForLinuxAloneAreNoWarnings: what Windows nodes do not do for an image that they never pull is information, and there is nothing to do.
func TestSourcesForLinuxAloneAreNoWarnings(t *testing.T) {
	const release = "quay.io/openshift-release-dev/ocp-release m.io/openshift/release-images"
	for name, c := range map[string]struct {
		sets  []Set
		pause string
		want  []string
	}{
		"a release":                               {idms(release), "", []string{"info MirrorNotRepresentable"}},
		"a release, for tags":                     {itms(release), "", []string{"info MirrorNotRepresentable"}},
		"all of the release's organization":       {idms("quay.io/openshift-release-dev m.io/release"), "", []string{"info MirrorNotRepresentable"}},
		"an organization with a longer name":      {idms("quay.io/openshift-release-devel m.io/release"), "", []string{"warning MirrorNotRepresentable"}},
		"a registry that also has other images":   {idms("quay.io/team m.io/other"), "", []string{"warning MirrorNotRepresentable"}},
		"a registry of images of operators":       {idms("registry.redhat.io/kueue/kueue-rhel9 quay.io/redhat-user-workloads/kueue/kueue"), "", []string{"info MirrorNotRepresentable"}},
		"the pause image is there":                {idms("registry.redhat.io/kueue m.io/other"), "registry.redhat.io/kueue/pause:1", []string{"warning MirrorNotRepresentable"}},
		"the pause image is elsewhere there":      {idms("registry.redhat.io/kueue m.io/other"), "registry.redhat.io/pause:1", []string{"info MirrorNotRepresentable"}},
		"a wildcard around them":                  {idms("*.redhat.io m.io"), "", []string{"warning MirrorNotRepresentable"}},
		"never contacted, which closes all of it": {idms("!" + release), "", []string{"warning NeverWidened", "info MirrorNotRepresentable"}},
	} {
		r := Build(Inputs{Sets: c.sets}, Options{PartialNever: Closed, PauseImage: c.pause})
		if diff := cmp.Diff(c.want, reasons(r.Findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, f := range r.Findings {
			if f.Severity == "info" && (!strings.HasPrefix(f.Fix, "none; ") || !strings.HasSuffix(f.Message, "for Linux alone")) {
				t.Errorf("%s: %q, fix: %q", name, f.Message, f.Fix)
			}
		}
	}
}

// TestMirrorThatMayServeAnotherImage: a mirror that is asked for more than its set lists is a warning only where a tag may be another image there.
func TestMirrorThatMayServeAnotherImage(t *testing.T) {
	const copies, another = "info MirrorScopeWidened", "warning MirrorScopeWidened"
	for name, c := range map[string]struct {
		sets []Set
		want string
	}{
		"digests alone":                              {idms("q.io/a m.io/a"), copies},
		"tags at the top of a registry":              {itms("q.io/a m.io/a"), another},
		"tags in a folder":                           {itms("q.io/a m.io/ocp/a"), copies},
		"a registry that mirrors several":            {slices.Concat(itms("q.io/a m.io/a"), idms("r.io/b m.io/b")), copies},
		"one that mirrors several, but none exactly": {slices.Concat(itms("q.io/a m.io/a"), idms("r.io/b m.io/c")), copies},
		"two parts of one registry":                  {itms("q.io/a m.io/a", "q.io/b m.io/b"), another},
		"a registry that is open to all":             {slices.Concat(itms("q.io/a quay.io/a"), idms("r.io/b quay.io/b")), another},
		"a folder of one that is open to all":        {itms("q.io/a quay.io/us/a"), copies},
		"the whole registry for tags":                {slices.Concat(itms("q.io m.io"), idms("q.io/a m.io/a")), copies},
		"the registry itself":                        {itms("q.io/a q.io/a m.io/x/a"), copies},
	} {
		r := Build(Inputs{Sets: c.sets}, Options{PartialNever: Closed})
		got := reasons(slices.DeleteFunc(slices.Clone(r.Findings), func(f bundle.Finding) bool { return f.Reason != reason.MirrorScopeWidened || f.Field != "q.io" }))
		if diff := cmp.Diff([]string{c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, f := range r.Findings {
			if f.Severity == "warning" && f.Reason == reason.MirrorScopeWidened && !strings.Contains(f.Fix, "/q.io/<source path>, or pull by digest") {
				t.Errorf("%s: fix: %q", name, f.Fix)
			}
		}
	}
}
