package base

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"wmco/bundle/published"
)

// TestWarningsEndWithTheirPage, within what an Event holds; other Events, and those of builds that are not releases, have none.
func TestWarningsEndWithTheirPage(t *testing.T) {
	const page = " (https://example.com/blob/v1/docs/reasons.md#drainblocked)"
	long := strings.Repeat("é", 800)
	for name, tt := range map[string]struct {
		pages      published.Pages
		kind, note string
		want       string
	}{
		"a warning":            {"https://example.com/blob/v1", corev1.EventTypeWarning, "50% of the pods", "50% of the pods" + page},
		"a slash":              {"https://example.com/blob/v1/", corev1.EventTypeWarning, "no", "no" + page},
		"a long one":           {"https://example.com/blob/v1", corev1.EventTypeWarning, long, strings.Repeat("é", (maxNote-len(page)-3)/2) + "..." + page},
		"nothing is wrong":     {"https://example.com/blob/v1", corev1.EventTypeNormal, "done", "done"},
		"what is not released": {"", corev1.EventTypeWarning, "no", "no"},
	} {
		recorder := events.NewFakeRecorder(1)
		linkingRecorder{recorder, tt.pages}.Eventf(nil, nil, tt.kind, "DrainBlocked", "Drain", "%s", tt.note)
		got := <-recorder.Events
		if want := tt.kind + " DrainBlocked " + tt.want; got != want {
			t.Errorf("%s: got  %q\nwant %q", name, got, want)
		}
		if note := strings.TrimPrefix(got, tt.kind+" DrainBlocked "); len(note) > maxNote {
			t.Errorf("%s: %d bytes", name, len(note))
		}
	}
}
