package bundle

import "strings"

// BoundedText returns text of another computer as one line of at most so many bytes, without control characters and
// without what may be a secret.
func BoundedText(text string, most int) string {
	// What is cut off costs nothing: masks take time.
	if limit := 4 * most; len(text) > limit {
		text = text[:limit]
	}
	text = strings.TrimSpace(strings.ReplaceAll(MaskLog(text), "\n", " "))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-3], "") + "..."
	}
	return text
}
