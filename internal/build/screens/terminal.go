package screens

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sizes in pixels. The width of a letter is set, so that columns stand below each other in any monospace font.
const (
	letter  = 7.8
	line    = 18
	border  = 14
	fontTop = 13
)

// Draw returns the picture of a terminal: a command and what it prints. Lines longer than columns are broken, as a
// terminal does.
func Draw(command, output string, columns int) []byte {
	lines := []string{"$ " + command}
	for text := range strings.SplitSeq(strings.TrimRight(output, "\n"), "\n") {
		lines = append(lines, breakLine(text, columns)...)
	}
	longest := 0
	for _, text := range lines {
		longest = max(longest, utf8.RuneCountInString(text))
	}
	var out bytes.Buffer
	width, height := float64(longest)*letter+2*border, len(lines)*line+2*border
	fmt.Fprintf(
		&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">`+"\n",
		width, height, width, height,
	)
	fmt.Fprintf(&out, "<title>%s</title>\n", escapeXML(command))
	out.WriteString(`<rect width="100%" height="100%" rx="8" fill="#1e1e1e"/>` + "\n")
	out.WriteString(`<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="13" fill="#e0e0e0">` + "\n")
	// Chromium reads xml:space on the text alone, not on its parent.
	for i, text := range lines {
		if text == "" {
			continue
		}
		style := ""
		if i == 0 {
			style = ` fill="#8fd18f"`
		}
		fmt.Fprintf(
			&out, `<text xml:space="preserve" x="%d" y="%d" textLength="%.1f"%s>%s</text>`+"\n", border,
			border+fontTop+i*line, float64(utf8.RuneCountInString(text))*letter, style, escapeXML(text),
		)
	}
	out.WriteString("</g>\n</svg>\n")
	return out.Bytes()
}

// breakLine returns a line in pieces that a terminal with so many columns shows below each other.
func breakLine(text string, columns int) []string {
	var pieces []string
	letters := []rune(strings.TrimRight(text, " "))
	for len(letters) > columns {
		pieces, letters = append(pieces, string(letters[:columns])), letters[columns:]
	}
	return append(pieces, string(letters))
}

func escapeXML(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a Buffer has no errors
	return out.String()
}
