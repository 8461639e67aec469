// Package templates embeds one template per templated file of a node. A template is readable as the file that it makes;
// the logic is in the view that it sees (package render).
package templates

import "embed"

// FS holds the templates, named after the file that each makes with ".tmpl" added.
//
//go:embed *.tmpl
var FS embed.FS
