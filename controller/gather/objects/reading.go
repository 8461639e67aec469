package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// maxListDepth is how many lists may be nested in each other.
const maxListDepth = 8

// batch is the result for a part of a file.
type batch struct {
	objects  []parsed
	findings bundle.Findings
	// isPartial reports whether a part of the text could not be read alone.
	isPartial bool
}

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
	// byHand reports whether the user named the file and it may be written by hand. Then text that only a parser can
	// read is parsed even if it names no wanted kind, and more mistakes are findings.
	byHand bool
	// recognized reports whether any document is YAML or JSON with content.
	recognized bool
}

// readDocument reads a document of the file. It may hold JSON objects one after the other.
func (r *reading) readDocument(s segment) batch {
	var all batch
	for !s.isEmpty() && s.text[s.start] == '{' {
		end, _, err := scanJSON(s)
		if err != nil {
			break
		}
		all.appendBatch(r.readSegment(s.upTo(end), typeMeta{}, 0))
		s = s.segmentAfter(end)
	}
	if !s.isEmpty() && s.text[s.start] != '%' { // a directive belongs to the next document
		all.appendBatch(r.readSegment(s, typeMeta{}, 0))
	}
	return all
}

// readSegment reads an object, or a list item by item. If an item cannot be parsed alone, the list is parsed as a
// whole: items may share anchors, and a line of a quoted text can look like an item. Depth is the number of lists
// around it.
func (r *reading) readSegment(s segment, inherited typeMeta, depth int) batch {
	found, isList := r.readList(s, inherited, depth)
	if isList && !found.isPartial {
		return found
	}
	value, bad := r.parseWhole(s)
	switch {
	case bad == nil:
		return r.objectsOfValue(value, s, inherited, depth)
	case len(found.findings) > 0:
		return found
	}
	found.appendBatch(r.brokenText(s, inherited, depth, *bad))
	return found
}

// readList reads the items of a list one by one.
func (r *reading) readList(s segment, inherited typeMeta, depth int) (all batch, isList bool) {
	parts, ok := splitList(s)
	if !ok {
		return batch{}, false
	}
	frame, bad := decodeSegment(newSegment(parts.frame, s.line))
	object, ok := frame.(map[string]any)
	h := headOf(object, inherited)
	switch {
	case bad != nil || !ok || !h.isList() || r.kinds.hasKind(h.kind):
		return batch{}, false
	case depth == maxListDepth:
		return batch{findings: r.tooDeepFindings(s)}, true
	}
	r.recognized = true
	for _, item := range parts.items {
		if !item.isEmpty() {
			all.appendBatch(r.readSegment(item, h.itemType(), depth+1))
		}
	}
	return all, true
}

// brokenText is the finding about a text that no parser can read. In a folder it may be none of the cluster's: then
// that is a warning, and there is none for a template or binary data, or for an object that is not wanted.
func (r *reading) brokenText(s segment, inherited typeMeta, depth int, bad problem) batch {
	h := headOfText(s, inherited)
	r.recognized = r.recognized || h.kind != "" || keyOfMapping.Match(s.text[s.start:])
	isWanted := slices.ContainsFunc(r.wants, h.mayMatch) || !h.isClear() && r.kinds.areNamedIn(s.text)
	isLarge := len(s.text)-s.start > maxObject
	switch f := r.malformedFinding(s, h, bad); {
	case isWanted && isLarge && h.isClear():
		return batch{findings: bundle.Findings{r.tooLargeFinding(s, h)}}
	case isWanted || r.byHand && !bad.isJSON:
		return batch{findings: bundle.Findings{f}, isPartial: true}
	case h.isClear():
		found := r.misfitFinding(s, h)
		found.isPartial = true
		return found
	case depth > 0 || isLarge || bad.isJSON || !mayBeManifest(s.text):
		return batch{isPartial: true}
	default:
		f.Severity, f.Reason, f.Fix = bundle.SeverityWarning, reason.DocumentSkipped, "correct the document, or remove it from the folder"
		return batch{findings: bundle.Findings{f}}
	}
}

// keyOfMapping matches the beginning of a mapping, which a file that the user named has even where it is broken.
var keyOfMapping = regexp.MustCompile(`^[\w"'./-]+[ \t]*:(?:\s|$)`)

// mayBeManifest reports whether a text is neither a template nor binary data.
func mayBeManifest(text []byte) bool {
	return !bytes.Contains(text, []byte("{{")) && bytes.IndexByte(text, 0) < 0 && utf8.Valid(text)
}

// parseWhole parses a segment, list or not, if it is small enough.
func (r *reading) parseWhole(s segment) (any, *problem) {
	if len(s.text)-s.start > maxObject {
		return nil, tooLargeToParse(s)
	}
	value, bad := decodeSegment(s)
	switch value.(type) {
	case map[string]any, []any:
		r.recognized = true
	}
	return value, bad
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

// objectsOfItems returns the wanted objects among the items of a parsed list. Each item has its own line if the list is
// a block.
func (r *reading) objectsOfItems(listed []any, s segment, inherited typeMeta, depth int) batch {
	if depth == maxListDepth {
		return batch{findings: r.tooDeepFindings(s)}
	}
	parts, _ := splitList(s)
	s.start = len(s.text) // the items are somewhere in the text
	var all batch
	for i, item := range listed {
		if len(parts.items) == len(listed) {
			s = parts.items[i]
		}
		all.appendBatch(r.objectsOfValue(item, s, inherited, depth+1))
	}
	return all
}

// judgeObject returns the object if it is wanted, or a finding if it is wanted and has a flaw.
func (r *reading) judgeObject(p parsed, bad *flaw, object map[string]any, s segment) batch {
	if bad != nil {
		if r.mayWantIncomplete(p, bad, s) {
			return batch{findings: bundle.Findings{flawedFinding(p, *bad)}}
		}
		return r.misfitFinding(s, headOf(object, typeMeta{p.Kind, apiVersion(p.Group, p.Version)}))
	}
	wanted := slices.DeleteFunc(slices.Clone(r.wants), func(w Want) bool { return !w.admitsObject(p) })
	if len(wanted) == 0 {
		return r.misfitFinding(s, headOf(object, typeMeta{p.Kind, apiVersion(p.Group, p.Version)}))
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
		return r.kinds.hasKind(p.Kind) || r.kinds.areNamedIn(s.text)
	}
	return slices.ContainsFunc(r.wants, func(w Want) bool {
		return w.Kind == p.Kind &&
			(bad.field == "apiVersion" || w.Group == p.Group) &&
			(bad.field == "metadata" || bad.field == "metadata.namespace" || w.admitsNamespace(p.Namespace)) &&
			(p.Name == "" || w.admitsName(p.Name))
	})
}
