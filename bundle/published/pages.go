package published

import "strings"

// Pages is the URL below which the files of the release can be read, such as https://github.com/OWNER/NAME/blob/v1.0.0.
// It is empty in builds that are not releases: then nothing is linked.
type Pages string

// ReasonURL returns where a reason is explained; empty if the pages have no URL.
func (p Pages) ReasonURL(reason string) string {
	if p == "" || reason == "" {
		return ""
	}
	return strings.TrimSuffix(string(p), "/") + "/docs/reasons.md#" + strings.ToLower(reason)
}

// AddPage adds to a message where its reason is explained. The message is shortened to as many bytes as are left of
// most.
func (p Pages) AddPage(message, reason string, most int) string {
	url := p.ReasonURL(reason)
	if url == "" {
		return message
	}
	link := " (" + url + ")"
	return ShortenTo(message, max(most-len(link), 0)) + link
}
