package objects

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"wmco/bundle"
)

// maxListDepth is how many lists may stand inside each other.
const maxListDepth = 8

// batch is what was found in one stretch of a file.
type batch struct {
	objects  []parsed
	findings bundle.Findings
	// isDoubtful says that a list may have been divided where it should not.
	isDoubtful bool
}

func (b *batch) add(more batch) {
	b.objects = append(b.objects, more.objects...)
	b.findings = append(b.findings, more.findings...)
	b.isDoubtful = b.isDoubtful || more.isDoubtful
}

// reading looks for wanted objects in one file.
type reading struct {
	wants  []Want
	words  vocabulary
	source string
	// isSmall says that the document at hand can be parsed whole if it cannot be divided.
	isSmall bool
	// recognized is set once any document proves to be YAML or JSON with something inside.
	recognized bool
}

// document reads a document of the file; JSON objects may follow each other in one.
func (r *reading) document(s segment) batch {
	var all batch
	for !s.isEmpty() {
		h, end := look(s)
		r.recognized = r.recognized || h.sure
		all.add(r.oneDocument(s.upTo(end), h))
		s = s.after(end)
	}
	return all
}

// look reads the head of the object in a segment, and finds its end.
func look(s segment) (h head, end int) {
	if s.text[s.start] == '{' {
		if h, end, ok := lookAtJSON(s); ok {
			return h, end
		}
		return head{}, len(s.text)
	}
	h = lookAtBlock(s)
	// What is too large to be parsed whole has to be read in parts, and a program that wrote so much indents it.
	if h.sure && len(s.text) <= maxObject {
		h.sure = !hasRareLineBreak(s.text)
	}
	return h, len(s.text)
}

// hasRareLineBreak tells whether the text holds a character that YAML 1.1 takes for a line break and nobody else does:
// next line, line separator, paragraph separator.
func hasRareLineBreak(text []byte) bool {
	if bytes.Contains(text, []byte("\u0085")) {
		return true
	}
	for {
		n := bytes.Index(text, []byte("\u2028")[:2])
		if n < 0 || n+2 >= len(text) {
			return false
		}
		if text[n+2] == 0xa8 || text[n+2] == 0xa9 {
			return true
		}
		text = text[n+2:]
	}
}

// oneDocument reads what the head tells of. A list that cannot be divided for sure, because its items share anchors or
// break their lines at odd columns, is parsed whole if it is small enough.
func (r *reading) oneDocument(s segment, h head) batch {
	r.isSmall = len(s.text) <= maxObject
	found, ok := r.node(s, h, 0)
	if ok && !found.isDoubtful {
		return found
	}
	whole, bad := r.whole(s, typeMeta{})
	if bad == nil {
		return whole
	}
	if !ok && len(found.findings) == 0 && r.words.names(s.text) {
		found.findings = append(found.findings, r.malformed(s, head{}, *bad))
	}
	return found
}

// node reads an object, or a list of them. It reports false when the text could not be read without what stands
// around it, or could not be read at all.
func (r *reading) node(s segment, h head, depth int) (batch, bool) {
	switch {
	case !h.sure || h.isUnclearList():
		return r.unclear(s, h, depth)
	case r.mayNeed(h):
		return r.single(s, h)
	case h.isList():
		return r.list(s, h, depth)
	}
	return batch{}, true
}

// mayNeed tells whether anybody wants the object.
func (r *reading) mayNeed(h head) bool { return slices.ContainsFunc(r.wants, h.mayMatch) }

// unclear reads text whose keys are not understood, if a wanted kind occurs in it or in its list.
func (r *reading) unclear(s segment, h head, depth int) (batch, bool) {
	isAlias := depth > 0 && bytes.IndexByte(s.text, '*') >= 0
	ofWantedList := r.words.has(h.inherited.kind)
	switch {
	case !isAlias && !ofWantedList && !r.words.mayName(s.text):
		return batch{}, true
	case depth == 0:
		return batch{}, false // oneDocument reads the whole
	}
	found, bad := r.whole(s, h.inherited)
	if bad != nil && (ofWantedList || r.words.names(s.text)) {
		found.findings = append(found.findings, r.malformed(s, head{}, *bad))
	}
	return found, bad == nil
}

// single reads an object that somebody wants.
func (r *reading) single(s segment, h head) (batch, bool) {
	if len(s.text)-s.start > maxObject {
		return batch{findings: bundle.Findings{r.tooLarge(s, h)}}, true
	}
	value, bad := decode(s)
	if bad != nil {
		return batch{findings: bundle.Findings{r.malformed(s, h, *bad)}}, false
	}
	return r.value(value, s, h.inherited, 0), true
}

// list reads the items of a list one by one.
func (r *reading) list(s segment, h head, depth int) (batch, bool) {
	var each iter.Seq2[segment, bool]
	switch h.items.form {
	case noItems:
		return batch{}, true
	case otherItems:
		return r.unclear(s, h, depth)
	case blockItems:
		each = blockItemsOf(s, h.items)
	case jsonItems:
		each = jsonItemsOf(s, h.items)
	}
	if depth == maxListDepth {
		return batch{findings: r.tooDeep(s)}, true
	}
	var all batch
	complete := true
	for item, ok := range each {
		found, read := batch{}, ok
		if ok && !item.isEmpty() {
			found, read = r.item(item, h, depth+1)
		}
		all.add(found)
		all.isDoubtful = all.isDoubtful || r.doubts(item, h)
		complete = complete && read
	}
	return all, complete
}

// doubts tells whether an item may not end where it seems to. Where nothing else could be done, there is no doubt.
func (r *reading) doubts(item segment, list head) bool {
	return r.isSmall && list.items.form == blockItems && isUnfinished(item.text)
}

// item reads an item of the list.
func (r *reading) item(s segment, list head, depth int) (batch, bool) {
	h, end := look(s)
	if contentStart(s.text, end) == len(s.text) {
		s = s.upTo(end)
	} else {
		h.sure = false
	}
	return r.node(s, h.inherit(list), depth)
}

// whole parses a stretch of text, list or not, if it is small enough.
func (r *reading) whole(s segment, inherited typeMeta) (batch, *problem) {
	if len(s.text)-s.start > maxObject {
		return batch{}, indivisible(s)
	}
	value, bad := decode(s)
	if bad != nil {
		return batch{}, bad
	}
	r.recognize(value)
	return r.value(value, s, inherited, 0), nil
}

// indivisible is why a text is not read that is too large to be parsed whole and could not be read in parts.
func indivisible(s segment) *problem {
	if s.text[s.start] == '{' {
		end, _ := endOfJSON(s.text, s.start)
		return &problem{line: 1 + bytes.Count(s.text[:end], newline), text: "it is not valid JSON from here on", isOurs: true}
	}
	return &problem{text: "it cannot be read in parts, and is larger than " + sizeText(maxObject), isOurs: true}
}

// recognize notes that the file holds YAML or JSON.
func (r *reading) recognize(value any) {
	switch value.(type) {
	case map[string]any, []any:
		r.recognized = true
	}
}

// value takes the wanted objects out of a parsed document.
func (r *reading) value(value any, s segment, inherited typeMeta, depth int) batch {
	object, ok := value.(map[string]any)
	if !ok {
		return batch{}
	}
	p, bad := identify(object, inherited)
	listed, isList := object["items"].([]any)
	if isList && strings.HasSuffix(p.Kind, "List") && !r.words.has(p.Kind) {
		return r.values(listed, s, typeMeta{p.Kind, apiVersion(p.Group, p.Version)}.item(), depth)
	}
	p.Source, p.Line = r.source, s.place
	return r.judge(p, bad, object, s)
}

// values takes the wanted objects out of the items of a parsed list.
func (r *reading) values(listed []any, s segment, inherited typeMeta, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeep(s)}
	}
	var places []int
	if depth == 0 {
		places = itemPlaces(s)
	}
	var all batch
	for i, item := range listed {
		if len(places) == len(listed) {
			s.place = places[i]
		}
		all.add(r.value(item, s, inherited, depth+1))
	}
	return all
}

// itemPlaces is where the items of a block list stand, if the look of the text tells.
func itemPlaces(s segment) []int {
	h, _ := look(s)
	if h.items.form != blockItems {
		return nil
	}
	var places []int
	for item, ok := range blockItemsOf(s, h.items) {
		if !ok {
			return nil
		}
		places = append(places, item.place)
	}
	return places
}

// judge decides whether anybody wants the object, and whether it is as it has to be.
func (r *reading) judge(p parsed, bad *flaw, object map[string]any, s segment) batch {
	if bad != nil {
		if r.mayWant(p, bad, s) {
			return batch{findings: bundle.Findings{flawed(p, *bad)}}
		}
		return batch{}
	}
	wanted := slices.DeleteFunc(slices.Clone(r.wants), func(w Want) bool { return !w.admits(p) })
	if len(wanted) == 0 {
		return batch{}
	}
	if !slices.ContainsFunc(wanted, func(w Want) bool { return w.Version == p.Version }) {
		return batch{findings: bundle.Findings{unknownVersion(p, wanted)}}
	}
	if bad := p.encode(object); bad != nil {
		return batch{findings: bundle.Findings{flawed(p, *bad)}}
	}
	return batch{objects: []parsed{p}}
}

// mayWant tells whether somebody may want an object that could not be identified in full.
func (r *reading) mayWant(p parsed, bad *flaw, s segment) bool {
	if bad.field == "kind" {
		return r.words.has(p.Kind) || r.words.names(s.text)
	}
	return slices.ContainsFunc(r.wants, func(w Want) bool {
		return w.Kind == p.Kind &&
			(bad.field == "apiVersion" || w.Group == p.Group) &&
			(bad.field == "metadata" || bad.field == "metadata.namespace" || w.admitsNamespace(p.Namespace)) &&
			(p.Name == "" || w.admitsName(p.Name))
	})
}
