// Package docs embeds the pages of the documentation.
package docs

import "embed"

// Pages are the pages by their paths in this folder. Pictures and examples are not among them.
//
//go:embed *.md gitops/*.md platforms/*.md runbooks/*.md
var Pages embed.FS
