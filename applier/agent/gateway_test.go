package agent

import (
	"strings"
	"testing"
	"time"

	"wmco/bundle"
	"wmco/gateway/places"
)

// TestRegistriesWithoutAPlaceAreReported once, until the gateway lists none, or none that was tried within the hour.
func TestRegistriesWithoutAPlaceAreReported(t *testing.T) {
	w := newWorld(t)
	now := w.clock.Now()
	list := func(registries ...string) {
		var all []places.Trouble
		for _, r := range registries {
			all = append(all, places.Trouble{Registry: r, Since: now, Last: now, Reason: "a.io: 503"})
		}
		data, err := places.EncodeTroubles(all)
		if err != nil {
			t.Fatal(err)
		}
		w.host.Place(places.TroubleFile, bundle.AccessAdmins, string(data))
	}
	list()
	if got := w.turn().ImagesUnreachable; got != "" || len(w.cluster.events) > 0 {
		t.Errorf("none: %q, %v", got, w.cluster.events)
	}
	list("quay.io")
	w.turn()
	if got := w.turn().ImagesUnreachable; !strings.HasPrefix(got, "quay.io since ") || !strings.HasSuffix(got, "(a.io: 503)") {
		t.Errorf("one: %q", got)
	}
	if got := w.cluster.events; len(got) != 1 || got[0].Reason != "ImagesUnreachable" {
		t.Errorf("events: %v", got)
	}
	if got := w.turnAfter(time.Hour).ImagesUnreachable; got != "" {
		t.Errorf("after an hour: %q", got)
	}
	w.host.Place(places.TroubleFile, bundle.AccessAdmins, "{")
	if got := w.turn().ImagesUnreachable; got == "" {
		t.Error("a damaged file is not reported")
	}
}
