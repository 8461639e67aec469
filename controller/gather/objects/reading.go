package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"wmco/bundle"
)

// maxListDepth is how many lists may be nested in each other.
const maxListDepth = 8

// batch is the result for a part of a file.
type batch struct {
	objects  []parsed
	findings bundle.Findings
	// isPartial reports whether a part of the text could not be read by itself.
	isPartial bool
}

func (b *batch) isEmpty() bool { return len(b.objects) == 0 && len(b.findings) == 0 && !b.isPartial }

// isSilent reports whether nothing of the text is used, and nothing is said about it.
func (b *batch) isSilent() bool { return len(b.objects) == 0 && len(b.findings) == 0 }

func (b *batch) add(more batch) {
	b.objects = append(b.objects, more.objects...)
	b.findings = append(b.findings, more.findings...)
	b.isPartial = b.isPartial || more.isPartial
}

// reading finds the wanted objects of one file.
type reading struct {
	wants  []Want
	kinds  kinds
	source string
	// byHand reports whether the user named the file and it may be written by hand. Then text that only a parser can read is
	// parsed even if it names no wanted kind, and more mistakes are findings.
	byHand bool
	// recognized reports whether any document is YAML or JSON with content.
	recognized bool
}

// document reads a document of the file. It may hold JSON objects one after the other.
func (r *reading) document(s segment) batch {
	var all batch
	for !s.isEmpty() && s.text[s.start] == '{' {
		reader := newJSONReader(s, r.kinds.resembles)
		for o := range reader.objects() {
			all.add(r.object(o, 0))
		}
		if reader.end == 0 {
			break
		}
		r.recognized = true
		s = reader.rest()
	}
	if !s.isEmpty() {
		all.add(r.block(s, typeMeta{}, 0))
	}
	return all
}

// object reads a JSON object, or the items of a JSON list.
func (r *reading) object(o jsonObject, depth int) batch {
	switch {
	case !o.isClear() && !r.kinds.mayBeIn(o.text):
		return batch{}
	case !o.isClear() || r.mayNeed(o.head):
		return r.single(o.segment(), o.head, depth)
	case !o.isList() || r.kinds.has(o.kind.text()):
		return r.misfit(o.segment(), o.head)
	case depth == maxListDepth:
		return batch{findings: r.tooDeep(o.segment())}
	}
	if !o.itemsRead {
		list := newJSONReader(o.segment(), r.kinds.resembles).list()
		o.items, o.strays = list.items, list.strays
	}
	var all batch
	for _, x := range o.strays {
		all.add(r.notObject(segment{place: x.line}, x.typeName, o.item()))
	}
	for _, item := range o.items {
		item.head = item.inherit(o.item())
		all.add(r.object(item, depth+1))
	}
	return all
}

// block reads an object or a list that is YAML.
func (r *reading) block(s segment, inherited typeMeta, depth int) batch {
	h, list := look(s)
	r.recognized = r.recognized || h.isRead
	h = h.inherit(inherited)
	switch {
	case h.isClear() && h.isList() && len(list.text) > 0 && !r.kinds.has(h.kind.text()):
		return r.list(list, h, depth)
	case r.mayHold(s, h, depth):
		return r.single(s, h, depth)
	}
	return r.misfit(s, h)
}

// mayHold reports whether a segment that is not a block list may hold a wanted object. If its head is not clear, that is
// decided by the names of the wanted kinds; an alias in an item may stand for one.
func (r *reading) mayHold(s segment, h head, depth int) bool {
	isItem := depth > 0
	if h.isClear() && !h.isList() && (h.kind.count > 0 || !isItem) {
		return r.mayNeed(h)
	}
	return r.kinds.has(h.inherited.kind) || r.kinds.mayBeIn(s.text) || isItem && bytes.IndexByte(s.text, '*') >= 0 ||
		r.byHand && (!h.isRead || h.isList())
}

// maxHandWritten is the size up to which a list may be written by hand. A program indents all lines of an item deeper
// than its dash; in a list of a person, a line of a quoted text can look like an item.
const maxHandWritten = 64 << 10

// list reads the items of a list one by one. A list is parsed as a whole if it may be written by hand, or if an item
// cannot be parsed alone: items may share anchors.
func (r *reading) list(list blockList, h head, depth int) batch {
	found := r.items(list, h, depth)
	isSmall := len(list.text) <= maxHandWritten
	if found.isEmpty() || !found.isPartial && !isSmall {
		return found
	}
	whole, bad := r.whole(list.segment, h.inherited, depth)
	if bad == nil {
		return whole
	}
	if found.isPartial && len(found.findings) == 0 && r.kinds.areNamed(list.text) {
		found.findings = bundle.Findings{r.malformed(list.segment, head{}, *bad)}
	}
	return found
}

// items reads the items of a list one by one. If their keys are at different columns, one of the dashes may be inside a
// text.
func (r *reading) items(list blockList, h head, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeep(list.segment)}
	}
	var all batch
	col := -1
	for item, ok := range list.items() {
		if !ok {
			all.isPartial = true
		} else if !item.isEmpty() {
			at := columnOf(item.text, item.start)
			all.isPartial = all.isPartial || col >= 0 && at != col
			col = at
			all.add(r.block(item, h.item(), depth+1))
		}
	}
	return all
}

// single parses an object that may be wanted, or text that only a parser can read.
func (r *reading) single(s segment, h head, depth int) batch {
	found, bad := r.whole(s, h.inherited, depth)
	switch {
	case bad == nil:
		return found
	case h.isClear() && r.mayNeed(h) && len(s.text)-s.start > maxObject:
		return batch{findings: bundle.Findings{r.tooLarge(s, h)}}
	case r.mayNeed(h) || r.kinds.has(h.inherited.kind) || r.kinds.areNamed(s.text):
		return batch{findings: bundle.Findings{r.malformed(s, h, *bad)}, isPartial: true}
	}
	return batch{isPartial: true}
}

// mayNeed reports whether an object with that head may be wanted.
func (r *reading) mayNeed(h head) bool { return slices.ContainsFunc(r.wants, h.mayMatch) }

// whole parses a segment, list or not, if it is small enough. Depth is the number of lists around it.
func (r *reading) whole(s segment, inherited typeMeta, depth int) (batch, *problem) {
	if len(s.text)-s.start > maxObject {
		return batch{}, indivisible(s)
	}
	value, bad := decode(s)
	if bad != nil {
		return batch{}, bad
	}
	r.recognize(value)
	return r.value(value, s, inherited, depth), nil
}

// indivisible explains why a text is not read that is too large to be parsed as a whole.
func indivisible(s segment) *problem {
	var syntax *json.SyntaxError
	if text := s.text[s.start:]; text[0] == '{' && errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) {
		before := s.text[:s.start+int(syntax.Offset)]
		return &problem{line: 1 + bytes.Count(before, newline), text: "it is not valid JSON from here on", isOurs: true}
	}
	return &problem{text: "it cannot be read in parts, and is larger than " + sizeText(maxObject), isOurs: true}
}

// recognize notes whether the file holds YAML or JSON with content.
func (r *reading) recognize(value any) {
	switch value.(type) {
	case map[string]any, []any:
		r.recognized = true
	}
}

// value returns the wanted objects of a parsed document.
func (r *reading) value(value any, s segment, inherited typeMeta, depth int) batch {
	object, ok := value.(map[string]any)
	switch {
	case ok:
	case depth == 0:
		return r.array(value, s)
	default:
		return r.notObject(s, typeName(value), inherited)
	}
	p, bad := identify(object, inherited)
	listed, isList := object["items"].([]any)
	if isList && strings.HasSuffix(p.Kind, "List") && !r.kinds.has(p.Kind) {
		return r.values(listed, s, typeMeta{p.Kind, apiVersion(p.Group, p.Version)}.item(), depth)
	}
	p.Source, p.Line = r.source, s.place
	return r.judge(p, bad, object, s)
}

// values returns the wanted objects among the items of a parsed list. Each item has its own line if the list is a block.
func (r *reading) values(listed []any, s segment, inherited typeMeta, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeep(s)}
	}
	segments := itemsOf(s)
	s.start = len(s.text) // the items are somewhere in the text
	var all batch
	for i, item := range listed {
		if len(segments) == len(listed) {
			s = segments[i]
		}
		all.add(r.value(item, s, inherited, depth+1))
	}
	return all
}

// itemsOf returns the items of a block list, or nil.
func itemsOf(s segment) []segment {
	var items []segment
	if _, list := look(s); len(list.text) > 0 {
		for item, ok := range list.items() {
			if !ok {
				return nil
			}
			items = append(items, item)
		}
	}
	return items
}

// judge returns the object if it is wanted, or a finding if it is wanted and has a flaw.
func (r *reading) judge(p parsed, bad *flaw, object map[string]any, s segment) batch {
	if bad != nil {
		if r.mayWant(p, bad, s) {
			return batch{findings: bundle.Findings{flawed(p, *bad)}}
		}
		return r.misfit(s, headOf(object, p))
	}
	wanted := slices.DeleteFunc(slices.Clone(r.wants), func(w Want) bool { return !w.admits(p) })
	if len(wanted) == 0 {
		return r.misfit(s, headOf(object, p))
	}
	if !slices.ContainsFunc(wanted, func(w Want) bool { return w.Version == p.Version }) {
		return batch{findings: bundle.Findings{unknownVersion(p, wanted)}}
	}
	if bad := p.encode(object); bad != nil {
		return batch{findings: bundle.Findings{flawed(p, *bad)}}
	}
	return batch{objects: []parsed{p}}
}

// mayWant reports whether an object may be wanted that could not be identified completely.
func (r *reading) mayWant(p parsed, bad *flaw, s segment) bool {
	if bad.field == "kind" {
		return r.kinds.has(p.Kind) || r.kinds.areNamed(s.text)
	}
	return slices.ContainsFunc(r.wants, func(w Want) bool {
		return w.Kind == p.Kind &&
			(bad.field == "apiVersion" || w.Group == p.Group) &&
			(bad.field == "metadata" || bad.field == "metadata.namespace" || w.admitsNamespace(p.Namespace)) &&
			(p.Name == "" || w.admitsName(p.Name))
	})
}
