package page

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// columns are the services of a picture by column, each with its class.
func columns(d diagram) map[int][]string {
	got := map[int][]string{}
	for _, b := range d.Boxes {
		got[b.column] = append(got[b.column], b.Name+" "+b.Class)
	}
	return got
}

func TestServicesAreRightOfWhatTheyDependOn(t *testing.T) {
	service := func(name string, dependencies ...string) bundle.Service {
		return bundle.Service{Name: name, Dependencies: dependencies}
	}
	d := servicesDiagram("x", []bundle.Service{
		service("kube-proxy", "hybrid-overlay-node", "kubelet"), service("kubelet", "containerd"), service("hybrid-overlay-node", "kubelet"), service("containerd", "LanmanServer"), service("exporter"),
	}, []string{"kubelet"})
	want := map[int][]string{0: {"LanmanServer windows", "exporter managed"}, 1: {"containerd managed"}, 2: {"kubelet restarts"}, 3: {"hybrid-overlay-node managed"}, 4: {"kube-proxy managed"}}
	if diff := cmp.Diff(want, columns(d)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if len(d.Arrows) != 5 || !strings.Contains(d.Text, "kubelet depends on containerd. ") {
		t.Errorf("%d arrows, %q", len(d.Arrows), d.Text)
	}
	for _, b := range d.Boxes {
		if b.X < 0 || b.X+b.Width > d.Width || b.Y+b.Height > d.Height {
			t.Errorf("%s is outside: %+v", b.Name, b)
		}
	}
}

// A circle, which no bundle has, and which an edited preview may have, ends.
func TestCirclesOfServicesEnd(t *testing.T) {
	d := servicesDiagram("x", []bundle.Service{{Name: "a", Dependencies: []string{"b"}}, {Name: "b", Dependencies: []string{"a"}}, {Name: "c", Dependencies: []string{"c"}}}, nil)
	if len(d.Boxes) != 3 || d.Width > 2000 {
		t.Errorf("%d boxes, %d wide", len(d.Boxes), d.Width)
	}
}

func TestTimelinesAreWithinTheirPicture(t *testing.T) {
	for name, c := range map[string]struct {
		spans []span
		ticks int
	}{
		"nothing":             {nil, 1},
		"no time":             {[]span{{label: "a"}}, 1},
		"a second":            {[]span{{label: "a", ends: time.Second}}, 2},
		"an hour and a bit":   {[]span{{label: "a", ends: time.Hour}, {label: "b", begins: time.Hour, ends: 65 * time.Minute}}, 5},
		"a hundred days":      {[]span{{label: "a", ends: 2400 * time.Hour}}, 4},
		"a negative duration": {[]span{{label: "a", begins: time.Hour, ends: time.Minute}}, 5},
	} {
		got := drawTimeline(c.spans, fromNow)
		for _, b := range got.Bars {
			if b.X < labelSide || name != "a negative duration" && b.X+b.Width > labelSide+timeSide+3 || b.Width < 3 {
				t.Errorf("%s: bar %+v", name, b)
			}
		}
		if len(got.Ticks) > mostTicks+1 || len(c.spans) > 0 && name != "no time" && len(got.Ticks) != c.ticks {
			t.Errorf("%s: ticks %+v, want %d", name, got.Ticks, c.ticks)
		}
	}
}

func TestOnlyTheLastRolloutIsDrawn(t *testing.T) {
	at := func(h int) time.Time { return noon().Add(time.Duration(h) * time.Hour) }
	keys := []turnKey{{begun: at(0), ended: at(1)}, {begun: at(20), ended: at(21)}, {begun: at(22)}, {begun: at(27)}}
	if got := lastRollout(keys); len(got) != 3 || !got[0].begun.Equal(at(20)) {
		t.Errorf("%+v", got)
	}
}

// TestATurnThatIsOverDoesNotGrow: of a turn that restarts nothing, no end is recorded.
func TestATurnThatIsOverDoesNotGrow(t *testing.T) {
	for _, c := range []struct {
		name  string
		turn  turnKey
		after []time.Duration
		text  string
	}{
		{"its end is recorded", turnKey{begun: noon(), ended: noon().Add(time.Minute), impact: bundle.ImpactRestart, result: "Applied"}, []time.Duration{time.Minute, time.Minute}, "restart"},
		{"the node had it at once", turnKey{begun: noon(), impact: bundle.ImpactNone, result: "Applied"}, []time.Duration{0, 0}, "none, Applied"},
		{"it was rolled back", turnKey{begun: noon(), impact: bundle.ImpactRestart, result: "RolledBack"}, []time.Duration{0, 0}, "restart, RolledBack"},
		{"it is under way", turnKey{begun: noon(), impact: bundle.ImpactDrain}, []time.Duration{time.Hour, 24 * time.Hour}, "drain, under way"},
		{"it is tried again", turnKey{begun: noon(), impact: bundle.ImpactDrain, result: "Failed"}, []time.Duration{time.Hour, 24 * time.Hour}, "drain, Failed"},
	} {
		for i, now := range []time.Duration{time.Hour, 24 * time.Hour} {
			if s := c.turn.spanText(noon(), noon().Add(now), []string{"a"}); s.begins != 0 || s.ends != c.after[i] || s.text != c.text {
				t.Errorf("%s, after %s: %+v", c.name, now, s)
			}
		}
	}
}

func TestAPageOfNothing(t *testing.T) {
	checkMarkup(t, "nothing", htmlOf(t, Page{Title: "x"}))
}
