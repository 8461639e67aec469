package page

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/render/review"
	"wmco/report/fleet"
)

// tag is one tag with its attributes, all of them quoted; html/template quotes what it escapes.
var (
	tag       = regexp.MustCompile(`<[^>]*>`)
	wellMade  = regexp.MustCompile(`^</?([a-zA-Z0-9]+)((?: [a-zA-Z0-9:-]+(?:="[^"<>]*")?)*)>$`)
	attribute = regexp.MustCompile(` ([a-zA-Z0-9:-]+)(?:="([^"]*)")?`)
)

// What a page consists of. A tag or attribute that loads, runs or sends anything is not among them.
var (
	tags = []string{
		"a", "b", "body", "br", "code", "defs", "desc", "details", "div", "g", "h1", "h2", "h3", "head", "header", "html", "li", "line", "main", "marker", "meta", "nav", "p", "path", "pre",
		"rect", "section", "span", "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
	}
	attributes = []string{
		"aria-label", "charset", "class", "content", "d", "dy", "height", "href", "http-equiv", "id", "lang", "marker-end", "markerHeight", "markerWidth", "name", "open", "orient",
		"refX", "refY", "role", "rx", "tabindex", "viewBox", "width", "x", "x1", "x2", "y", "y1", "y2",
	}
)

// checkMarkup fails if a page has any tag or attribute that pages do not have, or a link that leaves it.
func checkMarkup(t *testing.T, name, text string) {
	t.Helper()
	body, ok := strings.CutPrefix(text, "<!DOCTYPE html>")
	if !ok {
		t.Fatalf("%s begins with %.40q", name, text)
	}
	style := body[strings.Index(body, "<style>")+len("<style>") : strings.Index(body, "</style>")]
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Errorf("%s: the style loads something", name)
	}
	for _, x := range tag.FindAllString(strings.Replace(body, style, "", 1), -1) {
		parts := wellMade.FindStringSubmatch(x)
		if parts == nil || !slices.Contains(tags, parts[1]) {
			t.Errorf("%s: the tag %.200q", name, x)
			continue
		}
		for _, a := range attribute.FindAllStringSubmatch(parts[2], -1) {
			if !slices.Contains(attributes, a[1]) || a[1] == "href" && !strings.HasPrefix(a[2], "#") || a[1] == "marker-end" && !strings.HasPrefix(a[2], "url(#tip-") {
				t.Errorf("%s: the attribute %q of %.100q", name, a[0], x)
			}
		}
	}
}

func TestPagesLoadAndRunNothing(t *testing.T) {
	for name, p := range pages(t) {
		text := htmlOf(t, p)
		checkMarkup(t, name, text)
		if again := htmlOf(t, p); again != text {
			t.Errorf("%s differs from itself", name)
		}
		for _, s := range p.viewOf(t).Sections {
			if !strings.Contains(text, `<section id="`+s.Anchor+`">`) {
				t.Errorf("%s has no section %s", name, s.Anchor)
			}
		}
	}
}

func (p Page) viewOf(t *testing.T) view {
	t.Helper()
	v, err := p.buildView()
	must(t, err)
	return v
}

// Anchors that are linked exist, once.
func TestLinksLeadSomewhere(t *testing.T) {
	for name, p := range pages(t) {
		text := htmlOf(t, p)
		links := regexp.MustCompile(`(?:href="|url\()#([^")]+)`).FindAllStringSubmatch(text, -1)
		if len(links) == 0 {
			t.Errorf("%s has no links", name)
		}
		for _, l := range links {
			if n := strings.Count(text, ` id="`+l[1]+`"`); n != 1 {
				t.Errorf("%s: %s is there %d times", name, l[1], n)
			}
		}
	}
}

// hostile are names that try to be markup wherever they stand.
func hostile() []string {
	return []string{`</title><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</style><script>`, `]]></svg><script>`, "`${1}`", `{{.}}`}
}

func TestNamesOfObjectsAreText(t *testing.T) {
	for _, name := range hostile() {
		ref := bundle.Ref{Kind: name, Namespace: name, Name: name, Source: name}
		finding := bundle.Finding{Severity: bundle.SeverityWarning, Reason: name, Object: ref, Field: name, Message: name, Fix: name, Node: name}
		service := bundle.Service{Name: name, Description: name, Argv: []string{name}, Dependencies: []string{name + "2"}}
		file := bundle.File{Path: name, Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte(name)}}
		is := bundle.Bundle{Cluster: bundle.Layer{Files: []bundle.File{file}, Services: []bundle.Service{service}}, Provenance: bundle.Provenance{bundle.KindFile.ID(name): {ref}}}
		nodes := []review.Node{{Name: name, Bundle: is, Findings: bundle.Findings{finding}}}
		r := review.Compare([]review.Node{{Name: name}}, nodes)
		f := fleet.Fleet{Nodes: []fleet.Row{{Node: name, State: nodestate.Degraded, Reason: name, Message: name, Fix: name, Agent: name}}}
		for kind, p := range map[string]Page{
			"diff":   {Title: name, Subject: name, Review: &r, Nodes: nodes},
			"render": {Title: name, Findings: bundle.Findings{finding}, Nodes: nodes},
			"status": {Title: name, Fleet: &f},
		} {
			text := htmlOf(t, p)
			checkMarkup(t, kind+" "+name, text)
			if pictures := strings.Count(text, `<svg class="causes"`); pictures != 1 && kind != "status" {
				t.Errorf("%s: %s is in %d pictures of causes", kind, name, pictures)
			}
			if strings.Count(text, "<script") > 0 {
				t.Errorf("%s: %s is a script", kind, name)
			}
		}
	}
}

// A page has what a review and a preview show of secrets: nothing.
func TestPagesHaveNoSecrets(t *testing.T) {
	p, change := renderPage(t), diffPage(t)
	var secrets []string
	for _, n := range append(slices.Clone(p.Nodes), change.Nodes...) {
		for _, f := range n.Bundle.Files() {
			if f.Secret {
				secrets = append(secrets, string(f.Content.Data))
			}
		}
		for _, e := range n.Bundle.Cluster.Environments {
			for _, v := range e.Variables {
				if v.Secret() {
					secrets = append(secrets, string(v.Content.Data))
				}
			}
		}
	}
	if len(secrets) < 10 {
		t.Fatalf("%d secrets", len(secrets))
	}
	for name, p := range map[string]Page{"render": p, "diff": change, "a new node": {Review: compared(nil, p.Nodes), Nodes: p.Nodes}, "all is new": {Review: compared([]review.Node{{Name: p.Nodes[0].Name}}, p.Nodes[:1]), Nodes: p.Nodes[:1]}} {
		text := htmlOf(t, p)
		for _, s := range secrets {
			for line := range strings.Lines(s) {
				if line = strings.TrimSpace(line); len(line) > 8 && isOnlySecret(line, p) && strings.Contains(text, escapedText(line)) {
					t.Errorf("%s shows the line %.12q... of a secret", name, line)
				}
			}
		}
	}
}

func compared(before, after []review.Node) *review.Review {
	r := review.Compare(before, after)
	return &r
}

// isOnlySecret reports whether a line is in no text that people may see.
func isOnlySecret(line string, p Page) bool {
	for _, n := range p.Nodes {
		for _, f := range n.Bundle.Files() {
			if strings.Contains(string(f.Content.Shown()), line) {
				return false
			}
		}
	}
	return true
}

// escapedText is a text as a page has it.
func escapedText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(text)
}

// A thousand nodes are one group with one picture, and a page that a browser opens at once.
func TestAThousandNodesAreUsable(t *testing.T) {
	const n = 1000
	nodes := many(t, n)
	before := slices.Clone(nodes)
	for i := range before {
		before[i].Bundle.Node.HostName.Name = "old-" + nodes[i].Name
	}
	for name, p := range map[string]Page{
		"render": {Nodes: nodes},
		"diff":   {Review: compared(before, nodes), Nodes: nodes, Forecast: turnsOf(n)},
	} {
		text := htmlOf(t, p)
		if len(text) > 1<<20 || !strings.Contains(text, nodeName(n-1)) {
			t.Errorf("%s: %d bytes; the last node is named: %t", name, len(text), strings.Contains(text, nodeName(n-1)))
		}
		v := p.viewOf(t)
		if v.Changes != nil && (len(v.Changes.Groups) != 1 || len(v.Changes.Groups[0].Nodes) != n || v.Rollout.Timeline.More != n-mostRows || len(v.Rollout.Turns) != n) {
			t.Errorf("%s: %d groups, %d turns, %d more", name, len(v.Changes.Groups), len(v.Rollout.Turns), v.Rollout.Timeline.More)
		}
		if v.Changes == nil && (len(v.Nodes) != 1 || len(v.Nodes[0].Nodes) != n || len(v.Nodes[0].Others) != mostOthers) {
			t.Errorf("%s: %d groups", name, len(v.Nodes))
		}
	}
}

// Nodes of which the same is said are one group, though each has its own name in it.
func TestNodesInTheSameStateAreOneGroup(t *testing.T) {
	f := fleet.Fleet{}
	for i := range 1000 {
		f.Nodes = append(f.Nodes, fleet.Row{Node: nodeName(i), State: nodestate.Degraded, Reason: "RolledBack", Message: "service kubelet", Fix: "wmco retry " + nodeName(i)})
	}
	f.Nodes = append(f.Nodes, fleet.Row{Node: "a", State: nodestate.Degraded, Reason: "RolledBack", Message: "service containerd", Fix: "wmco retry a"}, fleet.Row{Node: "b", State: nodestate.Updated})
	groups := Page{Fleet: &f}.viewOf(t).Fleet.Groups
	if len(groups) != 3 || groups[0].Fix != "wmco retry NODE" || len(groups[0].Nodes) != 1000 || groups[1].Fix != "wmco retry a" || groups[2].State != string(nodestate.Updated) {
		t.Errorf("%d groups, the first with %d nodes", len(groups), len(groups[0].Nodes))
	}
}

// TestWhatIsNotReadyOrSilentIsShown: updated nodes whose kubelet is silent are a group of their own, which is open.
func TestWhatIsNotReadyOrSilentIsShown(t *testing.T) {
	f := fleet.Fleet{Operator: fleet.Operator{Problem: "the operator has been silent for 7m", Fix: "look at its Pods"}, Nodes: []fleet.Row{
		{Node: "a", State: nodestate.Updated, Ready: "True", Reason: "Applied"},
		{Node: "b", State: nodestate.Updated, Ready: "Unknown", Reason: "Applied", Message: "the Node is not Ready", Fix: "start the host"},
	}}
	p := Page{Title: "Windows nodes", Fleet: &f}
	view := p.viewOf(t).Fleet
	if len(view.Groups) != 2 || view.Groups[0].IsOpen || !view.Groups[1].IsOpen || view.Groups[1].Message != "the Node is not Ready" {
		t.Errorf("%+v", view.Groups)
	}
	if want := "2 Updated, 1 not Ready"; statesLine(f.Nodes) != want {
		t.Errorf("%q, want %q", statesLine(f.Nodes), want)
	}
	text := htmlOf(t, p)
	for _, want := range []string{f.Operator.Problem, f.Operator.Fix, "start the host"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Nodes of another cluster layer are another group; what a node has of its own is shown.
func TestEqualNodesAreShownOnce(t *testing.T) {
	p := renderPage(t)
	groups := p.viewOf(t).Nodes
	if len(groups) != 1 || len(groups[0].Nodes) != len(p.Nodes) || len(groups[0].Others) != len(p.Nodes)-1 {
		t.Fatalf("%d groups", len(groups))
	}
	for _, o := range groups[0].Others {
		if len(o.Changes) == 0 {
			t.Errorf("%s has nothing of its own", o.Name)
		}
	}
	p.Nodes[1].Bundle.Cluster.Files = slices.Clone(p.Nodes[1].Bundle.Cluster.Files)[1:]
	if groups := p.viewOf(t).Nodes; len(groups) != 2 {
		t.Errorf("%d groups with another cluster layer", len(groups))
	}
}
