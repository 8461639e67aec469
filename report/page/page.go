package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/render/review"
	"wmco/report/fleet"
	"wmco/report/forecast"
)

//go:embed page.html.tmpl page.css
var sources embed.FS

// Page is what one file shows. Parts that are absent are left out.
type Page struct {
	Title string
	// Subject is what the page was made from, such as the command.
	Subject string
	// At is the time that the page says; zero for one that depends on its inputs alone.
	At time.Time
	// Findings are those of the inputs. A review has its own.
	Findings bundle.Findings
	Fleet    *fleet.Fleet
	Review   *review.Review
	Forecast *forecast.Forecast
	// Nodes have what each node should be.
	Nodes []review.Node
}

// view is what the template sees.
type view struct {
	Title, Subject, At, Summary string
	Style                       template.CSS
	// Policy is the Content-Security-Policy: nothing but this style.
	Policy   string
	Sections []link
	Findings []findingList
	Fleet    *fleetView
	Rollout  *rolloutView
	Changes  *changesView
	Causes   *causesView
	Nodes    []nodeGroup
}

// link is an entry of the navigation.
type link struct{ Anchor, Title string }

// HTML returns the page.
func (p Page) HTML() (string, error) {
	t, err := template.New("page.html.tmpl").Option("missingkey=error").ParseFS(sources, "page.html.tmpl")
	if err != nil {
		return "", fmt.Errorf("reading the template of the page: %w", err)
	}
	v, err := p.buildView()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := t.Execute(&out, v); err != nil {
		return "", fmt.Errorf("writing the page: %w", err)
	}
	return out.String(), nil
}

func (p Page) buildView() (view, error) {
	style, err := sources.ReadFile("page.css")
	if err != nil {
		return view{}, fmt.Errorf("reading the style of the page: %w", err)
	}
	digest := sha256.Sum256(style)
	v := view{
		Title: p.Title, Subject: p.Subject, At: formatTime(p.At),
		Style:  template.CSS(style), //nolint:gosec // the style is a file of this package
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; base-uri 'none'; form-action 'none'",
	}
	v.Findings = findingLists(p)
	v.Fleet = fleetOf(p)
	v.Rollout = rolloutOf(p)
	v.Changes = changesOf(p)
	if v.Nodes, err = nodeGroups(p); err != nil {
		return view{}, err
	}
	v.Causes = causesOf(p, v)
	v.Summary = p.summaryLine()
	v.Sections = v.sectionLinks()
	return v, nil
}

// summaryLine is the page in one sentence.
func (p Page) summaryLine() string {
	switch {
	case p.Review != nil:
		return p.Review.Summary()
	case p.Fleet != nil:
		return statesLine(p.Fleet.Nodes)
	}
	return bundle.Count(len(p.Nodes), "Windows node")
}

func (v view) sectionLinks() []link {
	var list []link
	for _, s := range []struct {
		link
		shown bool
	}{
		{link{"findings", "Findings"}, len(v.Findings) > 0},
		{link{"fleet", "Fleet"}, v.Fleet != nil},
		{link{"rollout", "Rollout"}, v.Rollout != nil},
		{link{"causes", "Causes"}, v.Causes != nil},
		{link{"changes", "Changes"}, v.Changes != nil},
		{link{"nodes", "Nodes"}, len(v.Nodes) > 0},
	} {
		if s.shown {
			list = append(list, s.link)
		}
	}
	return list
}

// formatTime is a time in UTC; empty for none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
