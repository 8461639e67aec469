package page

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"wmco/bundle"
)

// Sizes of the timeline, in pixels of an SVG.
const (
	barHeight = 16
	rowHeight = 24
	labelSide = 300
	timeSide  = 540
	rightSide = 230
	axisSide  = 26
	longest   = 36
	mostRows  = 60
	mostTicks = 8
)

// span is what happens to some nodes at the same time.
type span struct {
	label  string
	begins time.Duration
	ends   time.Duration
	class  string
	text   string
}

// timeline is the picture of spans, from 0 to the end of the last one.
type timeline struct {
	Width, Height, AxisY int
	Bars                 []bar
	Ticks                []tick
	// More is how many rows are left out.
	More int
}

// bar is one span.
type bar struct {
	Label, Title, Class, Text    string
	X, Y, Width, Height          int
	LabelX, LabelY, TextX, TextY int
}

// tick is a time on the axis.
type tick struct {
	X     int
	Label string
}

// drawTimeline draws spans. A tick is labelled by the function.
func drawTimeline(spans []span, label func(time.Duration) string) timeline {
	t := timeline{Width: labelSide + timeSide + rightSide, More: max(0, len(spans)-mostRows)}
	spans = spans[:min(mostRows, len(spans))]
	var total time.Duration
	for _, s := range spans {
		total = max(total, s.ends)
	}
	at := func(d time.Duration) int {
		if total <= 0 {
			return labelSide
		}
		return labelSide + int(int64(timeSide)*int64(d/time.Millisecond)/max(1, int64(total/time.Millisecond)))
	}
	for i, s := range spans {
		y := i * rowHeight
		b := bar{Label: shortenLabel(s.label, longest), Title: s.label, Class: s.class, Text: s.text, X: at(s.begins), Y: y + (rowHeight-barHeight)/2, Height: barHeight}
		b.Width = max(3, at(s.ends)-b.X)
		b.LabelX, b.LabelY = labelSide-10, y+rowHeight/2+5
		b.TextX, b.TextY = b.X+b.Width+6, b.LabelY
		t.Bars = append(t.Bars, b)
	}
	t.AxisY = len(spans) * rowHeight
	t.Height = t.AxisY + axisSide
	for d, step := time.Duration(0), tickStep(total); d <= total && step > 0; d += step {
		t.Ticks = append(t.Ticks, tick{X: at(d), Label: label(d)})
	}
	return t
}

// tickStep is a round duration of which at most mostTicks are in a total.
func tickStep(total time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, step := range []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 30 * day,
	} {
		if total <= mostTicks*step {
			return step
		}
	}
	return total / mostTicks
}

// fromNow labels a tick of what is to come.
func fromNow(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "+" + duration.HumanDuration(d)
}

// impactClass is the class of a bar.
func impactClass(i bundle.Impact) string { return "impact-" + string(i) }

// someOf is the first of some names, and how many there are more.
func someOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}
