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

// segment returns the place and the text of the object.
func (o jsonObject) segment() segment { return segment{text: o.text, line: o.line, place: o.line} }

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
	f.add(value)
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

// objects yields the objects that the segment begins with, up to anything that is not JSON.
func (r *jsonReader) objects() iter.Seq[jsonObject] {
	read := r.object
	if bytes.Contains(r.text, []byte(`"items"`)) {
		read = r.list
	}
	return func(yield func(jsonObject) bool) {
		for r.peek() == '{' {
			o := read()
			if r.err != nil {
				return
			}
			r.end = r.offset()
			if !yield(o) {
				return
			}
		}
	}
}

// rest returns the segment without the objects that were read.
func (r *jsonReader) rest() segment { return r.after(r.start + r.end) }

func (r *jsonReader) offset() int { return int(r.decoder.InputOffset()) }

// next returns the offset of the next value or key, or the end of the text.
func (r *jsonReader) next() int {
	at := r.offset()
	for at < len(r.text) && (isBlank(r.text[at]) || r.text[at] == ':' || r.text[at] == ',') {
		at++
	}
	return at
}

// peek returns the first byte of the next value.
func (r *jsonReader) peek() byte {
	if at := r.next(); at < len(r.text) {
		return r.text[at]
	}
	return 0
}

// begin returns an object that begins at the next value.
func (r *jsonReader) begin() (o jsonObject, at int) {
	at = r.next()
	r.line += bytes.Count(r.text[r.counted:at], newline)
	r.counted = at
	return jsonObject{head: head{isRead: true}, line: r.line}, at
}

// token returns the next key; nil for anything else and after an error.
func (r *jsonReader) token() (token any) {
	if r.err == nil {
		token, r.err = r.decoder.Token()
	}
	return token
}

// more reports whether the open object or array has more values.
func (r *jsonReader) more() bool { return r.err == nil && r.decoder.More() }

// decode reads the next value.
func (r *jsonReader) decode(into any) {
	if r.err == nil {
		r.err = r.decoder.Decode(into)
	}
}

// value passes over the next value and returns its text, which is valid until the decoder reads on.
func (r *jsonReader) value() (text view) {
	r.decode(&text)
	return text
}

// object reads an object as a whole. If it is a list, its items are not read.
func (r *jsonReader) object() jsonObject {
	var keys struct {
		Kind       field `json:"kind"`
		APIVersion field `json:"apiVersion"`
		Metadata   view  `json:"metadata"`
		Items      view  `json:"items"`
	}
	o, from := r.begin()
	r.decode(&keys)
	o.kind, o.apiVersion = keys.Kind, keys.APIVersion
	o.hasItems = len(keys.Items) > len("[]") && keys.Items[0] == '['
	o.hasMetadata = len(keys.Metadata) > 0
	if kind := o.kind.text(); kind == "" || r.mayNeed(kind) {
		o.readMetadata(keys.Metadata)
	}
	o.text = r.text[from:max(from, r.offset())]
	return o
}

// list reads an object that may be a list key by key, so that the items need not be in memory twice.
func (r *jsonReader) list() jsonObject {
	o, from := r.begin()
	o.itemsRead = true
	r.token()
	for r.more() {
		switch r.token() {
		case "kind":
			r.decode(&o.kind)
		case "apiVersion":
			r.decode(&o.apiVersion)
		case "metadata":
			o.hasMetadata = true
			o.readMetadata(r.value())
		case "items":
			r.items(&o)
		default:
			r.value()
		}
	}
	r.token()
	o.text = r.text[from:max(from, r.offset())]
	return o
}

// items reads the items of a list.
func (r *jsonReader) items(o *jsonObject) {
	if r.peek() != '[' {
		r.value()
		return
	}
	r.token()
	for r.more() {
		o.hasItems = true
		if r.peek() != '{' {
			r.stray(o)
			continue
		}
		if item := r.object(); item.hasItems || item.kind.text() == "" || r.mayNeed(item.kind.text()) {
			o.items = append(o.items, item)
		}
	}
	r.token()
}

// stray passes over an item that is not an object. Nothing is known of a null, so it is not one.
func (r *jsonReader) stray(o *jsonObject) {
	item, _ := r.begin()
	var value any
	switch r.peek() {
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
	r.value()
}
