package base

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"wmco/bundle/published"
)

// Pages is the URL below which the files of the release can be read, such as https://github.com/OWNER/NAME/blob/v1.0.0. It is empty in what is not
// a release: then nothing is linked.
type Pages string

// ReasonURL returns where a reason is explained; empty if the pages have no URL.
func (p Pages) ReasonURL(reason string) string {
	if p == "" || reason == "" {
		return ""
	}
	return strings.TrimSuffix(string(p), "/") + "/docs/reasons.md#" + strings.ToLower(reason)
}

// AddPage adds to a message where its reason is explained. The message is shortened to as many bytes as are left of most.
func (p Pages) AddPage(message, reason string, most int) string {
	url := p.ReasonURL(reason)
	if url == "" {
		return message
	}
	link := " (" + url + ")"
	return published.ShortenTo(message, max(most-len(link), 0)) + link
}

// maxNote is how many bytes the note of an Event may have: the API server takes fewer than 1,024
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1).
const maxNote = 1023

// linkingRecorder ends the note of each warning with the page that explains its reason.
type linkingRecorder struct {
	events.EventRecorder
	pages Pages
}

// Eventf implements events.EventRecorder.
//
//nolint:revive // the interface has so many arguments
func (r linkingRecorder) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...any) {
	if kind == corev1.EventTypeWarning && r.pages != "" {
		note, args = "%s", []any{r.pages.AddPage(fmt.Sprintf(note, args...), reason, maxNote)}
	}
	r.EventRecorder.Eventf(about, related, kind, reason, action, note, args...)
}
