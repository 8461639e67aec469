package objects

import (
	"bytes"
	"iter"

	kjson "sigs.k8s.io/json"
)

// jsonObject is an object of a JSON text: its head and its place.
type jsonObject struct {
	head
	text []byte
	line int
	// items are the items of a list that may be needed, if itemsRead.
	items     []jsonObject
	itemsRead bool
	// strays are the first of the items that are not objects.
	strays []stray
}

// stray is an item of a list that is not an object.
type stray struct {
	line int
	// typeName is what it is.
	typeName string
}

// maxStrays is how many of the items that are not objects are findings.
const maxStrays = 100

// asSegment returns the place and the text of the object.
func (o jsonObject) asSegment() segment { return segment{text: o.text, line: o.line, place: o.line} }

// readMetadata reads the name and the namespace.
func (o *jsonObject) readMetadata(text []byte) {
	var metadata struct {
		Name      field `json:"name"`
		Namespace field `json:"namespace"`
	}
	if len(text) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(text, &metadata) == nil {
		o.name, o.namespace = metadata.Name, metadata.Namespace
	}
}

// view is the text of a value. It is valid until the decoder reads on.
type view []byte

// UnmarshalJSON implements json.Unmarshaler.
func (v *view) UnmarshalJSON(text []byte) error {
	*v = text
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. A value that is not text is one that only a parser can read.
func (f *field) UnmarshalJSON(text []byte) error {
	var value string
	_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	f.addValue(value)
	return nil
}

// jsonReader reads the heads of JSON objects with the decoder of a library.
type jsonReader struct {
	segment
	decoder kjson.Decoder
	// text is what the decoder reads.
	text []byte
	// counted is the offset up to which the lines are counted, and line its line in the file.
	counted, line int
	// end is the offset behind the last object that was read to its end.
	end int
	// mayNeed reports whether an item of that kind may be needed.
	mayNeed func(kind string) bool
	err     error
}

func newJSONReader(s segment, mayNeed func(kind string) bool) *jsonReader {
	text := s.text[s.start:]
	decoder := kjson.NewDecoderCaseSensitivePreserveInts(bytes.NewReader(text))
	return &jsonReader{segment: s, decoder: decoder, text: text, line: s.place, mayNeed: mayNeed}
}

// yieldObjects yields the objects that the segment begins with, up to anything that is not JSON.
func (r *jsonReader) yieldObjects() iter.Seq[jsonObject] {
	read := r.readObject
	if bytes.Contains(r.text, []byte(`"items"`)) {
		read = r.readListObject
	}
	return func(yield func(jsonObject) bool) {
		for r.peekByte() == '{' {
			o := read()
			if r.err != nil {
				return
			}
			r.end = r.inputOffset()
			if !yield(o) {
				return
			}
		}
	}
}

// unreadSegment returns the segment without the objects that were read.
func (r *jsonReader) unreadSegment() segment { return r.segmentAfter(r.start + r.end) }

func (r *jsonReader) inputOffset() int { return int(r.decoder.InputOffset()) }

// nextOffset returns the offset of the next value or key, or the end of the text.
func (r *jsonReader) nextOffset() int {
	at := r.inputOffset()
	for at < len(r.text) && (isBlank(r.text[at]) || r.text[at] == ':' || r.text[at] == ',') {
		at++
	}
	return at
}

// peekByte returns the first byte of the next value.
func (r *jsonReader) peekByte() byte {
	if at := r.nextOffset(); at < len(r.text) {
		return r.text[at]
	}
	return 0
}

// beginObject returns an object that begins at the next value.
func (r *jsonReader) beginObject() (o jsonObject, at int) {
	at = r.nextOffset()
	r.line += bytes.Count(r.text[r.counted:at], newline)
	r.counted = at
	return jsonObject{head: head{isRead: true}, line: r.line}, at
}

// nextKey returns the next key; nil for anything else and after an error.
func (r *jsonReader) nextKey() (token any) {
	if r.err == nil {
		token, r.err = r.decoder.Token()
	}
	return token
}

// hasMore reports whether the open object or array has more values.
func (r *jsonReader) hasMore() bool { return r.err == nil && r.decoder.More() }

// decodeValue reads the next value.
func (r *jsonReader) decodeValue(into any) {
	if r.err == nil {
		r.err = r.decoder.Decode(into)
	}
}

// skipValue passes over the next value and returns its text, which is valid until the decoder reads on.
func (r *jsonReader) skipValue() (text view) {
	r.decodeValue(&text)
	return text
}

// readObject reads an object as a whole. If it is a list, its items are not read.
func (r *jsonReader) readObject() jsonObject {
	var keys struct {
		Kind       field `json:"kind"`
		APIVersion field `json:"apiVersion"`
		Metadata   view  `json:"metadata"`
		Items      view  `json:"items"`
	}
	o, from := r.beginObject()
	r.decodeValue(&keys)
	o.kind, o.apiVersion = keys.Kind, keys.APIVersion
	o.hasItems = len(keys.Items) > len("[]") && keys.Items[0] == '['
	o.hasMetadata = len(keys.Metadata) > 0
	if kind := o.kind.textValue(); kind == "" || r.mayNeed(kind) {
		o.readMetadata(keys.Metadata)
	}
	o.text = r.text[from:max(from, r.inputOffset())]
	return o
}

// readListObject reads an object that may be a list key by key, so that the items need not be in memory twice.
func (r *jsonReader) readListObject() jsonObject {
	o, from := r.beginObject()
	o.itemsRead = true
	r.nextKey()
	for r.hasMore() {
		switch r.nextKey() {
		case "kind":
			r.decodeValue(&o.kind)
		case "apiVersion":
			r.decodeValue(&o.apiVersion)
		case "metadata":
			o.hasMetadata = true
			o.readMetadata(r.skipValue())
		case "items":
			r.readItems(&o)
		default:
			r.skipValue()
		}
	}
	r.nextKey()
	o.text = r.text[from:max(from, r.inputOffset())]
	return o
}

// readItems reads the items of a list.
func (r *jsonReader) readItems(o *jsonObject) {
	if r.peekByte() != '[' {
		r.skipValue()
		return
	}
	r.nextKey()
	for r.hasMore() {
		o.hasItems = true
		if r.peekByte() != '{' {
			r.skipStrayItem(o)
			continue
		}
		if item := r.readObject(); item.hasItems || item.kind.textValue() == "" || r.mayNeed(item.kind.textValue()) {
			o.items = append(o.items, item)
		}
	}
	r.nextKey()
}

// skipStrayItem passes over an item that is not an object. Nothing is known of a null, so it is not one.
func (r *jsonReader) skipStrayItem(o *jsonObject) {
	item, _ := r.beginObject()
	var value any
	switch r.peekByte() {
	case 'n':
	case '"':
		value = ""
	case '[':
		value = []any{}
	case 't', 'f':
		value = false
	default:
		value = 0
	}
	if value != nil && len(o.strays) < maxStrays {
		o.strays = append(o.strays, stray{item.line, typeName(value)})
	}
	r.skipValue()
}
