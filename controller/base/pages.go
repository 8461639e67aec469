package base

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"wmco/bundle/published"
)

// maxNote is how many bytes the note of an Event may have: the API server takes fewer than 1,024
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1).
const maxNote = 1023

// linkingRecorder ends the note of each warning with the page that explains its reason.
type linkingRecorder struct {
	events.EventRecorder
	pages published.Pages
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
