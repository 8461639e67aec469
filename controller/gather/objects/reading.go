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

// foundNothing reports whether nothing of the text is used, and nothing is said about it.
func (b *batch) foundNothing() bool { return len(b.objects) == 0 && len(b.findings) == 0 }

func (b *batch) appendBatch(more batch) {
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

// readDocument reads a document of the file. It may hold JSON objects one after the other.
func (r *reading) readDocument(s segment) batch {
	var all batch
	for !s.isEmpty() && s.text[s.start] == '{' {
		reader := newJSONReader(s, r.kinds.resemblesKind)
		for o := range reader.yieldObjects() {
			all.appendBatch(r.readJSONObject(o, 0))
		}
		if reader.end == 0 {
			break
		}
		r.recognized = true
		s = reader.unreadSegment()
	}
	if !s.isEmpty() {
		all.appendBatch(r.readBlock(s, typeMeta{}, 0))
	}
	return all
}

// readJSONObject reads a JSON object, or the items of a JSON list.
func (r *reading) readJSONObject(o jsonObject, depth int) batch {
	switch {
	case !o.isClear() && !r.kinds.mayBeIn(o.text):
		return batch{}
	case !o.isClear() || r.mayBeWanted(o.head):
		return r.parseSingle(o.asSegment(), o.head, depth)
	case !o.isList() || r.kinds.hasKind(o.kind.textValue()):
		return r.misfitFinding(o.asSegment(), o.head)
	case depth == maxListDepth:
		return batch{findings: r.tooDeepFindings(o.asSegment())}
	}
	if !o.itemsRead {
		list := newJSONReader(o.asSegment(), r.kinds.resemblesKind).readListObject()
		o.items, o.strays = list.items, list.strays
	}
	var all batch
	for _, x := range o.strays {
		all.appendBatch(r.notObjectFinding(segment{place: x.line}, x.typeName, o.itemType()))
	}
	for _, item := range o.items {
		item.head = item.inheritType(o.itemType())
		all.appendBatch(r.readJSONObject(item, depth+1))
	}
	return all
}

// readBlock reads an object or a list that is YAML.
func (r *reading) readBlock(s segment, inherited typeMeta, depth int) batch {
	h, list := readHead(s)
	r.recognized = r.recognized || h.isRead
	h = h.inheritType(inherited)
	switch {
	case h.isClear() && h.isList() && len(list.text) > 0 && !r.kinds.hasKind(h.kind.textValue()):
		return r.readList(list, h, depth)
	case r.mayHold(s, h, depth):
		return r.parseSingle(s, h, depth)
	case depth == 0 && !r.byHand && h.kind.count == 0:
		if broken := r.unparsableFinding(s); !broken.isEmpty() {
			return broken
		}
	}
	return r.misfitFinding(s, h)
}

// mayHold reports whether a segment that is not a block list may hold a wanted object. If its head is not clear, that is
// decided by the names of the wanted kinds; an alias in an item may stand for one.
func (r *reading) mayHold(s segment, h head, depth int) bool {
	isItem := depth > 0
	if h.isClear() && !h.isList() && (h.kind.count > 0 || !isItem) {
		return r.mayBeWanted(h)
	}
	if r.byHand && (!h.isRead || h.isList()) {
		return true
	}
	return r.kinds.hasKind(h.inherited.kind) || r.kinds.mayBeIn(s.text) || isItem && bytes.IndexByte(s.text, '*') >= 0
}

// maxHandWritten is the size up to which a list may be written by hand. A program indents all lines of an item deeper
// than its dash; in a list of a person, a line of a quoted text can look like an item.
const maxHandWritten = 64 << 10

// readList reads the items of a list one by one. A list is parsed as a whole if it may be written by hand, or if an item
// cannot be parsed alone: items may share anchors.
func (r *reading) readList(list blockList, h head, depth int) batch {
	found := r.readListItems(list, h, depth)
	isSmall := len(list.text) <= maxHandWritten
	if found.isEmpty() || !found.isPartial && !isSmall {
		return found
	}
	whole, bad := r.parseWhole(list.segment, h.inherited, depth)
	if bad == nil {
		return whole
	}
	if found.isPartial && len(found.findings) == 0 && r.kinds.areAllNamed(list.text) {
		found.findings = bundle.Findings{r.malformedFinding(list.segment, head{}, *bad)}
	}
	return found
}

// readListItems reads the items of a list one by one. If their keys are at different columns, one of the dashes may be inside a
// text.
func (r *reading) readListItems(list blockList, h head, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeepFindings(list.segment)}
	}
	var all batch
	col := -1
	for item, ok := range list.yieldItems() {
		if !ok {
			all.isPartial = true
		} else if !item.isEmpty() {
			at := columnOf(item.text, item.start)
			all.isPartial = all.isPartial || col >= 0 && at != col
			col = at
			all.appendBatch(r.readBlock(item, h.itemType(), depth+1))
		}
	}
	return all
}

// parseSingle parses an object that may be wanted, or text that only a parser can read.
func (r *reading) parseSingle(s segment, h head, depth int) batch {
	found, bad := r.parseWhole(s, h.inherited, depth)
	switch {
	case bad == nil:
		return found
	case h.isClear() && r.mayBeWanted(h) && len(s.text)-s.start > maxObject:
		return batch{findings: bundle.Findings{r.tooLargeFinding(s, h)}}
	case r.mayBeWanted(h) || r.kinds.hasKind(h.inherited.kind) || r.kinds.areAllNamed(s.text):
		return batch{findings: bundle.Findings{r.malformedFinding(s, h, *bad)}, isPartial: true}
	case depth == 0 && !r.byHand && h.kind.count == 0:
		return r.unparsableFinding(s)
	}
	return batch{isPartial: true}
}

// mayBeWanted reports whether an object with that head may be wanted.
func (r *reading) mayBeWanted(h head) bool { return slices.ContainsFunc(r.wants, h.mayMatch) }

// parseWhole parses a segment, list or not, if it is small enough. Depth is the number of lists around it.
func (r *reading) parseWhole(s segment, inherited typeMeta, depth int) (batch, *problem) {
	if len(s.text)-s.start > maxObject {
		return batch{}, tooLargeToParse(s)
	}
	value, bad := decodeSegment(s)
	if bad != nil {
		return batch{}, bad
	}
	r.noteFormat(value)
	return r.objectsOfValue(value, s, inherited, depth), nil
}

// tooLargeToParse explains why a text is not read that is too large to be parsed as a whole.
func tooLargeToParse(s segment) *problem {
	var syntax *json.SyntaxError
	if text := s.text[s.start:]; text[0] == '{' && errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) {
		before := s.text[:s.start+int(syntax.Offset)]
		return &problem{line: 1 + bytes.Count(before, newline), text: "it is not valid JSON from here on", isOurs: true}
	}
	return &problem{text: "it cannot be read in parts, and is larger than " + sizeText(maxObject), isOurs: true}
}

// noteFormat notes whether the file holds YAML or JSON with content.
func (r *reading) noteFormat(value any) {
	switch value.(type) {
	case map[string]any, []any:
		r.recognized = true
	}
}

// objectsOfValue returns the wanted objects of a parsed document.
func (r *reading) objectsOfValue(value any, s segment, inherited typeMeta, depth int) batch {
	object, ok := value.(map[string]any)
	switch {
	case ok:
	case depth == 0:
		return r.arrayFinding(value, s)
	default:
		return r.notObjectFinding(s, typeName(value), inherited)
	}
	p, bad := identifyObject(object, inherited)
	listed, isList := object["items"].([]any)
	if isList && strings.HasSuffix(p.Kind, "List") && !r.kinds.hasKind(p.Kind) {
		return r.objectsOfItems(listed, s, typeMeta{p.Kind, apiVersion(p.Group, p.Version)}.itemType(), depth)
	}
	p.Source, p.Line = r.source, s.place
	return r.judgeObject(p, bad, object, s)
}

// objectsOfItems returns the wanted objects among the items of a parsed list. Each item has its own line if the list is a block.
func (r *reading) objectsOfItems(listed []any, s segment, inherited typeMeta, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeepFindings(s)}
	}
	segments := itemsOf(s)
	s.start = len(s.text) // the items are somewhere in the text
	var all batch
	for i, item := range listed {
		if len(segments) == len(listed) {
			s = segments[i]
		}
		all.appendBatch(r.objectsOfValue(item, s, inherited, depth+1))
	}
	return all
}

// itemsOf returns the items of a block list, or nil.
func itemsOf(s segment) []segment {
	var items []segment
	if _, list := readHead(s); len(list.text) > 0 {
		for item, ok := range list.yieldItems() {
			if !ok {
				return nil
			}
			items = append(items, item)
		}
	}
	return items
}

// judgeObject returns the object if it is wanted, or a finding if it is wanted and has a flaw.
func (r *reading) judgeObject(p parsed, bad *flaw, object map[string]any, s segment) batch {
	if bad != nil {
		if r.mayWantIncomplete(p, bad, s) {
			return batch{findings: bundle.Findings{flawedFinding(p, *bad)}}
		}
		return r.misfitFinding(s, headOf(object, p))
	}
	wanted := slices.DeleteFunc(slices.Clone(r.wants), func(w Want) bool { return !w.admitsObject(p) })
	if len(wanted) == 0 {
		return r.misfitFinding(s, headOf(object, p))
	}
	if !slices.ContainsFunc(wanted, func(w Want) bool { return w.Version == p.Version }) {
		return batch{findings: bundle.Findings{unknownVersion(p, wanted)}}
	}
	if bad := p.encodeJSON(object); bad != nil {
		return batch{findings: bundle.Findings{flawedFinding(p, *bad)}}
	}
	return batch{objects: []parsed{p}}
}

// mayWantIncomplete reports whether an object may be wanted that could not be identified completely.
func (r *reading) mayWantIncomplete(p parsed, bad *flaw, s segment) bool {
	if bad.field == "kind" {
		return r.kinds.hasKind(p.Kind) || r.kinds.areAllNamed(s.text)
	}
	return slices.ContainsFunc(r.wants, func(w Want) bool {
		return w.Kind == p.Kind &&
			(bad.field == "apiVersion" || w.Group == p.Group) &&
			(bad.field == "metadata" || bad.field == "metadata.namespace" || w.admitsNamespace(p.Namespace)) &&
			(p.Name == "" || w.admitsName(p.Name))
	})
}
