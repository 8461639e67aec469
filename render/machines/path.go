package machines

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wmco/bundle"
)

// path is the path of a value in a JSON object: names and indexes of lists, written a.b[0].c.
type path []any

var (
	pathSyntax = regexp.MustCompile(`^[A-Za-z]\w*(\[\d{1,3}\])*(\.[A-Za-z]\w*(\[\d{1,3}\])*)*$`)
	pathParts  = regexp.MustCompile(`\w+`)
)

func parsePath(s string) (path, error) {
	if !pathSyntax.MatchString(s) {
		return nil, fmt.Errorf("%q is not a path such as disks[0].image", s)
	}
	var p path
	for _, part := range pathParts.FindAllString(s, -1) {
		if n, err := strconv.Atoi(part); err == nil {
			p = append(p, n)
			continue
		}
		p = append(p, part)
	}
	return p, nil
}

// mustParsePath returns a path that is a constant of the program.
func mustParsePath(s string) path {
	p, err := parsePath(s)
	if err != nil {
		panic(err)
	}
	return p
}

// isWithin reports whether the path is the other path or below it.
func (p path) isWithin(other path) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

func (p path) String() string {
	var out strings.Builder
	for i, part := range p {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", part)
		case string:
			if i > 0 {
				out.WriteByte('.')
			}
			out.WriteString(part)
		}
	}
	return out.String()
}

// get returns the value at the path, nil if there is none.
func (p path) get(v any) any {
	for _, part := range p {
		switch part := part.(type) {
		case string:
			o, _ := v.(object)
			v = o[part]
		case int:
			list, _ := v.([]any)
			if part >= len(list) {
				return nil
			}
			v = list[part]
		}
	}
	return v
}

// text returns the string at the path, empty if there is none.
func (p path) text(v any) string {
	s, _ := p.get(v).(string)
	return s
}

// put returns v with the value at the path. Missing objects and lists on the way are created; a list can grow by one
// element at its end.
func (p path) put(v, value any) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	switch part := p[0].(type) {
	case string:
		o, ok := v.(object)
		if !ok && v != nil {
			return nil, fmt.Errorf("%s is not inside an object", part)
		}
		inner, err := p[1:].put(o[part], value)
		if err != nil {
			return nil, err
		}
		if o == nil {
			o = object{}
		}
		o[part] = inner
		return o, nil
	case int:
		list, ok := v.([]any)
		if !ok && v != nil {
			return nil, fmt.Errorf("[%d] is not inside a list", part)
		}
		if part > len(list) {
			return nil, fmt.Errorf("[%d] is beyond the end of the list, which has %s", part, bundle.Count(len(list), "element"))
		}
		if part == len(list) {
			list = append(list, nil)
		}
		inner, err := p[1:].put(list[part], value)
		if err != nil {
			return nil, err
		}
		list[part] = inner
		return list, nil
	}
	return nil, fmt.Errorf("a path of names and numbers contains %T", p[0])
}

// hasValue reports whether a value contains a text, a number or true.
func hasValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case bool:
		return v
	case object:
		for _, value := range v {
			if hasValue(value) {
				return true
			}
		}
		return false
	case []any:
		for _, value := range v {
			if hasValue(value) {
				return true
			}
		}
		return false
	}
	return true
}
