// Package templates embeds one template per templated file of a node. A template reads like the file that it makes; its
// logic is in its view (package render).
package templates

import "embed"

// FS holds the templates, named after the file that each makes with ".tmpl" added.
//
//go:embed *.tmpl
var FS embed.FS
