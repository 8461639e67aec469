package page

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"wmco/bundle"
)

// Sizes of the picture of services, in pixels of an SVG.
const (
	boxHeight  = 34
	boxGap     = 14
	columnGap  = 56
	letter     = 8 // the width of one at 13 pixels, monospaced
	boxMargin  = 20
	widestName = 40
	border     = 2
)

// diagram is the picture of the services of a node: what a service depends on is on its left.
type diagram struct {
	// ID tells it from the others of a page.
	ID            string
	Width, Height int
	// CanvasWidth and CanvasHeight have room for the lines of the outer boxes.
	CanvasWidth, CanvasHeight int
	Boxes                     []box
	Arrows                    []string
	// Text says the same in words, for who cannot see it.
	Text string
}

// box is one service.
type box struct {
	Name, Title, Class  string
	X, Y, Width, Height int
	TextX, TextY        int
	dependencies        []string
	column              int
}

// servicesDiagram draws services, those that restart marked. Services of Windows itself, which only others name, are dashed.
func servicesDiagram(id string, services []bundle.Service, restarts []string) diagram {
	boxes := map[string]*box{}
	var names []string
	add := func(name, class string) *box {
		if boxes[name] == nil {
			boxes[name] = &box{Name: shortenLabel(name, widestName), Title: name, Class: class}
			names = append(names, name)
		}
		return boxes[name]
	}
	for _, s := range services {
		b := add(s.Name, "managed")
		b.dependencies = s.Dependencies
		if slices.Contains(restarts, s.Name) {
			b.Class, b.Title = "restarts", s.Name+" restarts"
		}
	}
	for _, s := range services {
		for _, d := range s.Dependencies {
			add(d, "windows")
		}
	}
	slices.Sort(names)
	for range names { // a way through n services has n columns at most; a circle ends here
		for _, n := range names {
			for _, d := range boxes[n].dependencies {
				boxes[n].column = max(boxes[n].column, min(boxes[d].column+1, len(names)))
			}
		}
	}
	d := place(names, boxes)
	d.ID, d.CanvasWidth, d.CanvasHeight = id, d.Width+2*border, d.Height+2*border
	return d
}

// place gives every box its place: columns from left to right, in each the names in order.
func place(names []string, boxes map[string]*box) diagram {
	d := diagram{}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(boxes[a].column, boxes[b].column) })
	left, column, row, widest := 0, 0, 0, 0
	for _, n := range names {
		b := boxes[n]
		if b.column != column && row > 0 {
			left, row, widest = left+widest+columnGap, 0, 0
		}
		column = b.column
		b.Width, b.Height = utf8.RuneCountInString(b.Name)*letter+boxMargin, boxHeight
		b.X, b.Y = left, row*(boxHeight+boxGap)
		b.TextX, b.TextY = b.X+boxMargin/2, b.Y+boxHeight/2+5
		row, widest = row+1, max(widest, b.Width)
		d.Width, d.Height = max(d.Width, b.X+b.Width), max(d.Height, b.Y+b.Height)
	}
	for _, n := range names {
		b := boxes[n]
		d.Boxes = append(d.Boxes, *b)
		for _, name := range b.dependencies {
			d.Arrows = append(d.Arrows, arrowPath(*boxes[name], *b))
			d.Text += n + " depends on " + name + ". "
		}
	}
	return d
}

// arrowPath is a curve from the right of one box to the left of another.
func arrowPath(from, to box) string {
	x1, y1 := from.X+from.Width, from.Y+from.Height/2
	x2, y2 := to.X-6, to.Y+to.Height/2
	bend := max((x2-x1)/2, 12)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}

// shortenLabel shortens a text for a place of limited width.
func shortenLabel(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
