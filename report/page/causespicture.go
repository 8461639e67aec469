package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wmco/bundle"
)

// Limits of the picture of causes. What it leaves out is counted in it, and is in words below it.
const (
	mostArrows = 90
	mostBoxes  = 30 // of one column
	mostKinds  = 12 // of one column
)

// foldLevels are how many parts of one kind have a box of their own, from the picture with the most to the one that is always small enough.
func foldLevels() []int { return []int{8, 4, 2, 0} }

// Sizes in it, in pixels.
const (
	partHeight  = 26
	partGap     = 6
	kindHeight  = 22
	headHeight  = 26
	causesGap   = 90
	widestLabel = 38
)

// causesPicture is the picture of which object causes what.
type causesPicture struct {
	Width, Height             int
	CanvasWidth, CanvasHeight int
	// Title and Text say what it is, for who cannot see it.
	Title, Text  string
	Heads, Kinds []pictureText
	Boxes        []causeBox
}

// pictureText is a text at a place.
type pictureText struct {
	Text string
	X, Y int
}

// causeBox is one part, or several of one kind, and the arrows that leave it.
type causeBox struct {
	Label, Title, Class, Anchor string
	X, Y, Width, Height         int
	TextX, TextY                int
	Arrows                      []string

	column int
	kind   string
	to     []*causeBox
}

// drawPicture draws the parts, as many of them as can be told apart.
func (g *causesGraph) drawPicture(verb string) causesPicture {
	var boxes []*causeBox
	for _, most := range foldLevels() {
		boxes = g.foldParts(most)
		if isReadable(boxes) {
			break
		}
	}
	p := placeCauses(boxes)
	p.Title = "Which object " + verb + " what"
	p.Text = fmt.Sprintf("On the left %s, next to it %s.", bundle.Count(len(g.listParts(objectColumn)), "object"), countEntries(len(g.listParts(entryColumn))))
	if effects := len(g.listParts(effectColumn)); effects > 0 {
		p.Text += fmt.Sprintf(" On the right what that costs nodes: %s.", bundle.Count(effects, "effect"))
	}
	p.Text += " Each box is a link to its part of this page. The list below the picture says the same in words."
	return p
}

// isReadable reports whether people can follow the arrows.
func isReadable(boxes []*causeBox) bool {
	arrows, rows := 0, [allColumns]int{}
	for _, b := range boxes {
		arrows += len(b.to)
		rows[b.column]++
	}
	return arrows <= mostArrows && slices.Max(rows[:]) <= mostBoxes
}

// foldParts makes boxes: one for each of the first parts of a kind, and one for those that are left.
func (g *causesGraph) foldParts(most int) []*causeBox {
	var boxes []*causeBox
	at := map[*part]*causeBox{}
	for column := range allColumns {
		kinds := kindsOf(g.listParts(column))
		for i, list := range kinds {
			kind := list[0].kind
			if i == mostKinds {
				list, kind = slices.Concat(kinds[i:]...), "other kinds"
			}
			boxes = append(boxes, foldKind(kind, list, most, at)...)
			if i == mostKinds {
				break
			}
		}
	}
	for _, p := range g.parts { // the arrows, each once
		for _, q := range p.to {
			if from, to := at[p], at[q]; !slices.Contains(from.to, to) {
				from.to = append(from.to, to)
			}
		}
	}
	return boxes
}

// kindsOf are parts by kind, in each the highest impact first.
func kindsOf(parts []*part) [][]*part {
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(b.rank, a.rank), strings.Compare(a.name, b.name))
	})
	var kinds [][]*part
	for i, p := range parts {
		if i == 0 || parts[i-1].kind != p.kind {
			kinds = append(kinds, nil)
		}
		kinds[len(kinds)-1] = append(kinds[len(kinds)-1], p)
	}
	return kinds
}

// foldKind makes the boxes of one kind, and notes in which one each part is.
func foldKind(kind string, parts []*part, most int, at map[*part]*causeBox) []*causeBox {
	var boxes []*causeBox
	if len(parts) <= most+1 { // a box that says "1 more" is as large as that one
		most = len(parts)
	}
	folder := sharedFolder(parts[:most])
	for _, p := range parts[:most] {
		at[p] = &causeBox{Label: p.shortLabel(folder), Title: cmp.Or(p.title, p.label), Class: cmp.Or(p.class, "managed"), Anchor: p.anchor, column: p.column, kind: kind}
		boxes = append(boxes, at[p])
	}
	if rest := parts[most:]; len(rest) > 0 {
		b := &causeBox{Label: fmt.Sprintf("and %d more", len(rest)), Class: "more", Anchor: "objects", column: rest[0].column, kind: kind}
		if most == 0 {
			b.Label = fmt.Sprintf("%d of them", len(rest))
		}
		var labels []string
		for _, p := range rest {
			at[p] = b
			labels = append(labels, p.label)
		}
		b.Title = fmt.Sprintf("%s, %s: %s", kind, b.Label, someOf(labels))
		boxes = append(boxes, b)
	}
	return boxes
}

// sharedFolder is how the names of parts of one kind begin, up to the last separator that all of them have.
func sharedFolder(parts []*part) string {
	if len(parts) < 2 {
		return ""
	}
	shared := parts[0].name
	for _, p := range parts[1:] {
		n := 0
		for n < min(len(shared), len(p.name)) && shared[n] == p.name[n] {
			n++
		}
		shared = shared[:n]
	}
	return shared[:strings.LastIndexAny(shared, `\/`)+1]
}

// shortLabel is the label as far as there is room. What others have as well is cut first: they would all look the same.
func (p *part) shortLabel(folder string) string {
	label := p.label
	if folder != "" && utf8.RuneCountInString(label) > widestLabel {
		label = strings.Replace(label, folder, "…", 1)
	}
	return shortenMiddle(label, widestLabel)
}

// placeCauses gives every box its place: a column each for objects, entries and effects, in it kind by kind.
func placeCauses(boxes []*causeBox) causesPicture {
	p := causesPicture{}
	var columns [allColumns][]*causeBox
	heights := [allColumns]int{}
	for _, b := range boxes {
		column := columns[b.column]
		if len(column) == 0 || column[len(column)-1].kind != b.kind {
			heights[b.column] += kindHeight
		}
		heights[b.column] += partHeight + partGap
		columns[b.column] = append(column, b)
	}
	highest, left := slices.Max(heights[:]), 0
	for i, head := range [allColumns]string{"objects", "entries", "on nodes"} {
		if len(columns[i]) == 0 {
			continue
		}
		p.Heads = append(p.Heads, pictureText{head, left, headHeight / 2})
		width := p.placeColumn(columns[i], left, headHeight+(highest-heights[i])/2)
		p.Width, left = left+width, left+width+causesGap
	}
	p.Height = headHeight + highest
	p.CanvasWidth, p.CanvasHeight = p.Width+2*border, p.Height+2*border
	for _, b := range boxes {
		for _, to := range b.to {
			b.Arrows = append(b.Arrows, arrowPath(b.takePlace(), to.takePlace()))
		}
		p.Boxes = append(p.Boxes, *b)
	}
	return p
}

// placeColumn places the boxes of one column below each other, and returns how wide they are.
func (p *causesPicture) placeColumn(boxes []*causeBox, left, top int) int {
	width := 0
	for _, b := range boxes {
		width = max(width, utf8.RuneCountInString(b.Label)*letter+boxMargin)
	}
	for i, b := range boxes {
		if i == 0 || boxes[i-1].kind != b.kind {
			p.Kinds = append(p.Kinds, pictureText{shortenMiddle(b.kind, widestLabel), left, top + kindHeight - 7})
			width = max(width, min(utf8.RuneCountInString(b.kind), widestLabel)*letter)
			top += kindHeight
		}
		b.X, b.Y, b.Height = left, top, partHeight
		b.TextX, b.TextY = left+boxMargin/2, top+partHeight/2+5
		top += partHeight + partGap
	}
	for _, b := range boxes {
		b.Width = width
	}
	return width
}

func (b *causeBox) takePlace() box { return box{X: b.X, Y: b.Y, Width: b.Width, Height: b.Height} }

// shortenMiddle shortens a name or path of which the end tells as much as the beginning.
func shortenMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most/2-1]) + "…" + string(runes[len(runes)-most/2:])
}
