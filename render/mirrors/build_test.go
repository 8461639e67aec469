package mirrors

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// idms and itms parse sets written as "source mirror mirror", with "!" before the source for NeverContactSource and "+" for
// an explicit AllowContactingSource.
func idms(lines ...string) []Set { return sets(DigestSet, lines) }
func itms(lines ...string) []Set { return sets(TagSet, lines) }

func sets(kind SetKind, lines []string) []Set {
	var list []Set
	for i, line := range lines {
		words := strings.Fields(line)
		s := Set{Kind: kind, Ref: bundle.Ref{Kind: string(kind), Name: "set"}, Field: fmt.Sprintf("spec.x[%d]", i), Source: words[0], Mirrors: words[1:]}
		switch line[0] {
		case '!':
			s.Source, s.Policy = words[0][1:], NeverContactSource
		case '+':
			s.Source, s.Policy = words[0][1:], AllowContactingSource
		}
		list = append(list, s)
	}
	return list
}

// show prints files as "dir: server=... endpoint endpoint", an endpoint as its URL without /v2, with "+t" if tags may be
// resolved, "(push)" if it blocks and "~" if it is insecure.
func show(files []HostsFile) []string {
	var lines []string
	for _, f := range files {
		line := f.Directory + ":"
		if !f.Server.IsZero() {
			line += " server=" + showEndpoint(f.Server)
		}
		for _, h := range f.Hosts {
			line += " " + showEndpoint(h)
		}
		lines = append(lines, line)
	}
	return lines
}

func showEndpoint(e Endpoint) string {
	text := strings.Replace(strings.TrimPrefix(e.URL, "https://"), "/v2", "", 1)
	if slices.Contains(e.Capabilities, Resolve) {
		text += "+t"
	}
	if slices.Contains(e.Capabilities, Push) {
		text += "(push)"
	}
	if e.SkipVerify {
		text += "~"
	}
	return text
}

func reasons(findings bundle.Findings) []string {
	var list []string
	for _, f := range findings {
		list = appendNew(list, string(f.Severity)+" "+f.Reason)
	}
	return list
}

func TestHostsFilesAndFindings(t *testing.T) {
	const widened, mixed, notRepresentable = "info MirrorScopeWidened", "warning MirrorScopeWidened", "warning MirrorNotRepresentable"
	tests := []struct {
		name     string
		sets     []Set
		scopes   Scopes
		open     bool
		want     []string
		findings []string
	}{
		{name: "no inputs"},
		{name: "a whole registry", sets: idms("q.io m.io n.io"), want: []string{"q.io: m.io n.io"}},
		{name: "a whole registry to a path", sets: idms("q.io m.io:5000/q"), want: []string{"q.io: m.io:5000/q"}},
		{name: "ports on both sides", sets: idms("q.io:8443 m.io:5000"), want: []string{"q.io_8443_: m.io:5000"}},
		{name: "the end of the path of a mirror is removed", sets: idms("q.io/a/b m.io/x/a/b"), want: []string{"q.io: m.io/x"}, findings: []string{widened}},
		{name: "a renamed repository", sets: idms("q.io/lib m.io/other"), findings: []string{notRepresentable}},
		{name: "a mirror without the organization", sets: idms("q.io/org/app m.io/app"), findings: []string{notRepresentable}},
		{name: "a mirror that ends in a part of the segment", sets: idms("q.io/lib m.io/mylib"), findings: []string{notRepresentable}},
		{name: "the source between its mirrors", sets: idms("q.io m.io q.io n.io"), want: []string{"q.io: m.io q.io n.io"}},
		{name: "two mirrors collapse to one endpoint", sets: slices.Concat(idms("q.io/a m.io/a", "q.io/b m.io/b"), itms("q.io/c m.io/c")), want: []string{"q.io: m.io+t"}, findings: []string{mixed}},
		{name: "tags only", sets: itms("q.io m.io"), want: []string{"q.io: m.io+t"}, findings: []string{"info TagMirrorServesDigests"}},
		{name: "NeverContactSource", sets: idms("!q.io m.io n.io"), want: []string{"q.io: server=n.io m.io n.io"}},
		{name: "NeverContactSource, for tags too", sets: slices.Concat(idms("!q.io m.io"), itms("!q.io m.io")), want: []string{"q.io: server=m.io+t m.io+t"}},
		{name: "NeverContactSource without mirrors is ignored", sets: idms("!q.io")},
		{name: "NeverContactSource on one of two parts", sets: idms("!q.io/a m.io/a", "q.io/b n.io/b"), want: []string{"q.io: server=n.io m.io n.io"}, findings: []string{"warning NeverWidened", widened}},
		{name: "NeverContactSource on one of two parts, partialNever Open", sets: idms("!q.io/a m.io/a", "q.io/b n.io/b"), open: true, want: []string{"q.io: m.io n.io"}, findings: []string{"warning NeverNotKept", widened}},
		{name: "NeverContactSource on the whole registry, a part allowed", sets: idms("!q.io m.io", "q.io/b n.io/b"), want: []string{"q.io: server=n.io m.io n.io"}, findings: []string{"warning NeverWidened", widened}},
		{name: "NeverContactSource on one part, the source among the mirrors of another", sets: idms("!q.io/a m.io/a", "q.io/b n.io/b q.io/b o.io/b"), want: []string{"q.io: server=o.io m.io n.io o.io"}, findings: []string{"warning NeverWidened", widened}},
		{name: "NeverContactSource and no representable mirror", sets: idms("!q.io/a m.io/b"), want: []string{"q.io: server=q.io(push)"}, findings: []string{"warning NeverWidened", notRepresentable}},
		{name: "a wildcard", sets: idms("*.q.io m.io"), findings: []string{notRepresentable}},
		{name: "a wildcard with NeverContactSource", sets: idms("!*.q.io m.io"), findings: []string{notRepresentable, "warning NeverNotKept"}},
		{name: "Docker Hub and localhost", sets: idms("docker.io m.io", "localhost:5000 m.io"), want: []string{"docker.io: m.io", "localhost_5000_: m.io"}},
		{name: "Docker Hub as a mirror", sets: idms("q.io docker.io"), want: []string{"q.io: registry-1.docker.io"}},
		{name: "sources that differ in case are one host", sets: idms("Q.io m.io", "q.IO n.io"), want: []string{"q.io: m.io n.io"}},
		{name: "device names of Windows", sets: idms("con m.io", "nul.local m.io", "con:5000 m.io"), want: []string{"con_5000_: m.io"}, findings: []string{notRepresentable}},
		{name: "a host that begins with http", sets: idms("q.io httpbin.org"), want: []string{"q.io: httpbin.org"}},
		{name: "contradicting orders of mirrors", sets: idms("q.io/a m.io/a n.io/a", "q.io/b n.io/b m.io/b"), want: []string{"q.io: m.io n.io"}, findings: []string{"warning MirrorOrderNotKept", widened}},
		{name: "the source first for tags, last for digests", sets: slices.Concat(idms("a.io m.io"), itms("a.io a.io m.io")), want: []string{"a.io: a.io+t m.io+t"}, findings: []string{"warning MirrorOrderNotKept", "info TagMirrorServesDigests"}},
		{name: "mirrors for digests before those for tags, where one of each may be first", sets: slices.Concat(idms("q.io z.io a.io"), itms("q.io q2.io a.io")), want: []string{"q.io: z.io q2.io+t a.io+t"}, findings: []string{"info TagMirrorServesDigests"}},
		{name: "mirrors for digests before those for tags, where no mirror is shared", sets: slices.Concat(idms("q.io z.io y.io"), itms("q.io b.io a.io")), want: []string{"q.io: z.io y.io b.io+t a.io+t"}, findings: []string{"info TagMirrorServesDigests"}},
		{name: "a mirror for tags before one for digests, where the order of the tags asks for it", sets: slices.Concat(idms("q.io y.io"), itms("q.io b.io y.io")), want: []string{"q.io: b.io+t y.io+t"}, findings: []string{"info TagMirrorServesDigests"}},
		{name: "a blocked registry", scopes: Scopes{Blocked: []string{"q.io"}}, want: []string{"q.io: server=q.io(push)"}},
		{name: "a blocked registry with mirrors", sets: idms("q.io m.io"), scopes: Scopes{Blocked: []string{"q.io"}}, want: []string{"q.io: server=m.io m.io"}},
		{name: "a blocked part, a blocked wildcard", scopes: Scopes{Blocked: []string{"q.io/a", "*.q.io"}}, findings: []string{"warning BlockNotRepresentable"}},
		{name: "entries that are not scopes", scopes: Scopes{Blocked: []string{"q.io/x:tag", "b.io"}, Insecure: []string{"[::1]:5000"}}, want: []string{"b.io: server=b.io(push)"}, findings: []string{"warning BlockNotRepresentable", "warning InsecureNotRepresentable"}},
		{name: "a blocked mirror", sets: idms("q.io m.io n.io"), scopes: Scopes{Blocked: []string{"m.io"}}, want: []string{"m.io: server=m.io(push)", "q.io: n.io"}, findings: []string{"info MirrorBlocked"}},
		{name: "a mirror with a port below a wildcard with NeverContactSource", sets: idms("!*.n.io m.io", "q.io a.n.io:5000 a.n.io m.io"), want: []string{"q.io: m.io"}, findings: []string{notRepresentable, "warning NeverNotKept", "info MirrorBlocked"}},
		{name: "an insecure mirror", sets: idms("q.io m.io/x n.io"), scopes: Scopes{Insecure: []string{"m.io/x"}}, want: []string{"q.io: http://m.io/x~ n.io"}, findings: []string{"warning InsecureNotRepresentable"}},
		{name: "an insecure mirror and one that is not, at one endpoint", sets: idms("q.io/a m.io/a", "q.io/b m.io/b"), scopes: Scopes{Insecure: []string{"m.io/a"}}, want: []string{"q.io: m.io"}, findings: []string{"warning InsecureNotRepresentable", widened}},
		{name: "two insecure mirrors at one endpoint", sets: idms("q.io/a m.io/a", "q.io/b m.io/b"), scopes: Scopes{Insecure: []string{"m.io/a", "m.io/b"}}, want: []string{"q.io: http://m.io~"}, findings: []string{"warning InsecureNotRepresentable", widened}},
		{name: "an insecure registry", scopes: Scopes{Insecure: []string{"q.io:5000"}}, want: []string{"q.io_5000_: server=http://q.io:5000+t~"}},
		{name: "an insecure registry with mirrors", sets: idms("q.io m.io"), scopes: Scopes{Insecure: []string{"q.io"}}, want: []string{"q.io: server=http://q.io+t~ m.io"}},
		{name: "allowed registries", sets: idms("q.io m.io", "r.io m.io"), scopes: Scopes{Allowed: []string{"q.io", "s.io/part"}}, want: []string{"_default: server=blocked.invalid(push)", "q.io: m.io", "r.io: server=r.io(push)", "s.io:"}, findings: []string{"warning AllowWidened"}},
		{name: "allowed images, with a tag and with a digest", scopes: Scopes{Allowed: []string{"q.io/team/app:v1", "r.io:5000/app@sha256:" + strings.Repeat("0", 64), "s.io:tag"}}, want: []string{"_default: server=blocked.invalid(push)", "q.io:", "r.io_5000_:"}, findings: []string{"warning AllowWidened", "warning AllowNotRepresentable"}},
		{name: "an allowed wildcard", sets: idms("a.q.io m.io"), scopes: Scopes{Allowed: []string{"*.q.io"}}, want: []string{"_default: server=blocked.invalid(push)", "a.q.io: server=a.q.io(push)"}, findings: []string{"warning AllowNotRepresentable"}},
		{name: "an allowed wildcard, partialNever Open", sets: idms("a.q.io m.io"), scopes: Scopes{Allowed: []string{"*.q.io"}}, open: true, want: []string{"a.q.io: m.io"}, findings: []string{"warning AllowNotRepresentable"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			partial := Closed
			if test.open {
				partial = Open
			}
			r := Build(Inputs{Sets: test.sets, Scopes: test.scopes}, Options{PartialNever: partial})
			if diff := cmp.Diff(test.want, show(r.Files)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.findings, reasons(r.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, r.Findings)
			}
		})
	}
}

// TestFindingsAdviseWhatHelps compares the messages and fixes that depend on how sources lie inside each other.
func TestFindingsAdviseWhatHelps(t *testing.T) {
	const closed = "no part of q.io is contacted, although "
	for name, c := range map[string]struct {
		sets   []Set
		reason string
		want   []string
	}{
		"never for a part": {idms("!q.io/a m.io/a"), reason.NeverWidened, []string{
			closed + "NeverContactSource is set for q.io/a only: containerd configures whole registries",
			"mirror everything that Windows nodes pull from q.io, or set mirrors.partialNever: Open in windows-machine-config" + fixExact,
		}},
		"never for a part of a source with mirrors of its own": {idms("q.io m.io", "!q.io/a/b n.io/a/b"), reason.NeverWidened, []string{
			closed + "NeverContactSource is set for q.io/a/b only: containerd configures whole registries",
			"if the mirrors of q.io hold everything, set NeverContactSource for q.io too; otherwise allow contacting q.io/a/b, or set mirrors.partialNever: Open in windows-machine-config" + fixExact,
		}},
		"never for all, a part allowed": {idms("!q.io m.io", "q.io/b n.io/b"), reason.NeverWidened, []string{
			closed + "q.io/b may be: NeverContactSource is set for all of q.io, and containerd configures whole registries",
			"mirror everything that Windows nodes pull from q.io/b, or allow contacting all of q.io" + fixExact,
		}},
		"widened, without the sources whose mirrors are left out": {idms("q.io/a m.io/a", "q.io/b m.io/c", "q.io/d m.io/d"), reason.MirrorScopeWidened, []string{
			"the mirrors for q.io/a, q.io/d are used for every image of q.io: containerd can only configure a whole registry",
			"none; a digest is verified wherever the image comes from",
		}},
		"the mirrors of all, for a part whose mirrors are left out": {idms("q.io m.io", "q.io/b m.io/c"), reason.MirrorScopeWidened, []string{
			"the mirrors for q.io are also used for q.io/b, although it has none of its own: containerd can only configure a whole registry",
			"none; a digest is verified wherever the image comes from",
		}},
	} {
		var got []string
		for _, f := range Build(Inputs{Sets: c.sets}, Options{PartialNever: Closed}).Findings {
			if f.Reason == c.reason {
				got = append(got, f.Message, f.Fix)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMixedTransportIsReported: an endpoint of which only some mirrors are insecure requires TLS, and the finding names it.
func TestMixedTransportIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		insecure []string
		want     []string
	}{
		"one of two": {[]string{"m.io/a"}, []string{"m.io: TLS is required for m.io, although a mirror in it is insecure: another mirror in it is not, and containerd has one setting for both"}},
		"both":       {[]string{"m.io/a", "m.io/b"}, nil},
		"neither":    {[]string{"o.io"}, nil},
	} {
		var got []string
		for _, f := range Build(Inputs{Sets: idms("q.io/a m.io/a", "q.io/b m.io/b"), Scopes: Scopes{Insecure: c.insecure}}, Options{PartialNever: Closed}).Findings {
			if f.Reason == reason.InsecureNotRepresentable && strings.HasPrefix(f.Message, "TLS is required") {
				got = append(got, f.Field+": "+f.Message)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAdviceOnNeverIsTrue follows the fix of each NeverWidened and checks that the finding is gone.
func TestAdviceOnNeverIsTrue(t *testing.T) {
	for name, sets := range map[string][]Set{
		"never for the source around it too": idms("!q.io m.io", "!q.io/a/b n.io/a/b"),
		"the part may be contacted":          idms("q.io m.io", "q.io/a/b n.io/a/b"),
		"all may be contacted":               idms("q.io m.io", "q.io/b n.io/b"),
	} {
		if got := reasons(Build(Inputs{Sets: sets}, Options{PartialNever: Closed}).Findings); slices.Contains(got, "warning NeverWidened") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhatTheMachineConfigOperatorRefuses(t *testing.T) {
	tests := []struct {
		name string
		in   Inputs
		want []string
	}{
		{"two policies for one source, one of them unset", Inputs{Sets: slices.Concat(idms("q.io m.io"), itms("!q.io m.io"))}, []string{
			`conflicting mirrorSourcePolicy is set for the same source "q.io" in imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies`,
		}},
		{"NeverContactSource with the source among the mirrors", Inputs{Sets: idms("!q.io m.io q.io")}, []string{`cannot set mirrorSourcePolicy: NeverContactSource if the source "q.io" is one of the mirrors`}},
		{"schemes, tags, digests and upper case", Inputs{Sets: idms("q.io. m.io", "https://q.io m.io:tag", "docker://q.io m.io@sha256:abc", "q.io/UP *.m.io", "q.io m.io/")}, []string{
			`invalid format for mirror "*.m.io"`, `invalid format for mirror "m.io/"`, `invalid format for mirror "m.io:tag"`, `invalid format for mirror "m.io@sha256:abc"`,
			`invalid format for source "docker://q.io"`, `invalid format for source "https://q.io"`, `invalid format for source "q.io."`, `invalid format for source "q.io/UP"`,
		}},
		{"scopes of Image/cluster", Inputs{Scopes: Scopes{Insecure: []string{"*q.io"}, Blocked: []string{"q.*"}}}, []string{`invalid entry for blocked registries "q.*"`, `invalid entry for insecure registries "*q.io"`}},
	}
	for _, test := range tests {
		r := Build(test.in, Options{PartialNever: Closed})
		var got []string
		for _, f := range r.Findings {
			got = appendNew(got, f.Message)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" || !r.Findings.Refused() || r.Files != nil {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestWhereAnImageIsLookedFor(t *testing.T) {
	r := Build(Inputs{Sets: slices.Concat(idms("q.io m.io"), itms("!r.io n.io")), Scopes: Scopes{Blocked: []string{"b.io"}, Insecure: []string{"i.io"}}}, Options{PartialNever: Closed})
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	tests := []Lookup{
		{Image: "q.io/a:1", By: "tag", Mirrors: []string{}, Source: true},
		{Image: "q.io/a" + digest, By: "digest", Mirrors: []string{"https://m.io/v2"}, Source: true},
		{Image: "r.io/a:1", By: "tag", Mirrors: []string{"https://n.io/v2"}},
		{Image: "b.io/a:1", By: "tag", Mirrors: []string{}},
		{Image: "i.io/a:1", By: "tag", Mirrors: []string{}, Source: true},
		{Image: "other.io/a:1", By: "tag", Mirrors: []string{}, Source: true},
	}
	for _, want := range tests {
		if diff := cmp.Diff(want, r.Lookup(want.Image)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestPasswordsInKeysOfThePullSecretAreMasked(t *testing.T) {
	secret := bundle.NewSecret(`{"auths":{"https://user:hunter2@reg.io/a":{"auth":"!"},"user:hunter2@reg.io":{"auth":"!"}}}`)
	r := Build(Inputs{PullSecret: secret}, Options{PartialNever: Closed})
	if len(r.Findings) != 2 || strings.Contains(fmt.Sprint(r.Findings), "hunter2") {
		t.Errorf("%+v", r.Findings)
	}
}

func FuzzBuild(f *testing.F) {
	f.Add("q.io/a", "m.io/a", "n.io", "q.io", true)
	f.Add("*.q.io", "m.io", "q.io/b", "*.m.io", false)
	f.Fuzz(func(t *testing.T, source, first, second, scope string, never bool) {
		s := Set{Kind: DigestSet, Ref: bundle.Ref{Name: "a"}, Source: source, Mirrors: []string{first, second}}
		if never {
			s.Policy = NeverContactSource
		}
		r := Build(Inputs{Sets: []Set{s}, Scopes: Scopes{Insecure: []string{scope}, Blocked: []string{second}}}, Options{PartialNever: Closed})
		for _, file := range r.Files {
			if err := bundle.CheckName(file.Directory); err != nil {
				t.Error(err)
			}
		}
	})
}
