// Package page writes what the commands know as one HTML file for a browser: findings first, then the fleet and its rollout, which objects
// cause what as a picture, what changes, and what each node should have.
//
//	review, fleet, forecast, bundles --view--> page.html.tmpl --> one file
//
// The file loads nothing and runs nothing: it has no scripts, and its own policy forbids them (Content-Security-Policy). Names and messages
// of objects are untrusted; html/template escapes each where it stands. Secrets are masked as in previews and reviews, always. Equal nodes
// are shown once, and lists are bounded, so that a page about a thousand nodes can be used.
package page
