package objects

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"strconv"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxObject is the size of the largest text that is parsed as a whole, in bytes. etcd stores objects of up to 1.5 MiB;
// indentation and escapes do not double that.
const maxObject = 4 << 20

// problem is the reason why a text cannot be parsed.
type problem struct {
	// line is counted from 1 in the text that was parsed; 0 if the parser reported none.
	line int
	// text is the message of the parser. It may quote the document.
	text string
	// isOurs reports whether the text is a message of this package, which quotes nothing.
	isOurs bool
	// isJSON reports whether the text is valid JSON, so that the YAML parser need not be tried.
	isJSON bool
}

var (
	lineInProblem = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:)?\s*(?:line (\d+): )?([^\n]*)`)
	quotedValue   = regexp.MustCompile("(?: `|: map\\[|: \\[).*")
	keyGivenTwice = regexp.MustCompile(`^key (".*") already set in map$`)
)

// decodeSegment parses the content of a segment, strictly.
func decodeSegment(s segment) (any, *problem) {
	text := blankedUpTo(s.text, s.start)
	if s.text[s.start] == '{' {
		value, bad := decodeJSON(text)
		if bad == nil || bad.isJSON {
			return value, bad
		}
		if value, worse := decodeYAML(text); worse == nil {
			return value, nil
		}
		return nil, bad
	}
	return decodeYAML(text)
}

// blankedUpTo returns a copy of the text in which blanks replace the dash and the comments before the content, so that an
// item is a document.
func blankedUpTo(text []byte, start int) []byte {
	out := bytes.Clone(text)
	for i, c := range out[:start] {
		if c != '\n' {
			out[i] = ' '
		}
	}
	return out
}

func decodeJSON(text []byte) (any, *problem) {
	var value any
	twice, err := kjson.UnmarshalStrict(text, &value, kjson.DisallowDuplicateFields)
	if err != nil {
		_, offset := kjson.SyntaxErrorOffset(err)
		at := min(max(int(offset), 0), len(text))
		return nil, &problem{line: 1 + bytes.Count(text[:at], newline), text: err.Error()}
	}
	if len(twice) > 0 {
		return nil, &problem{text: twice[0].Error(), isJSON: true}
	}
	return value, nil
}

func decodeYAML(text []byte) (any, *problem) {
	if bad := checkAliases(text); bad != nil {
		return nil, bad
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil && bytes.Contains(text, []byte("<<")) && !hasKeyTwice(text) {
		// The strict parser reports a key that overrides a merged one (<<) as given twice.
		asJSON, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		return nil, newYAMLProblem(err)
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &value); err != nil {
		return nil, &problem{text: err.Error()}
	}
	return value, nil
}

// newYAMLProblem reads the first line of the parser's message, without the values that it quotes.
func newYAMLProblem(err error) *problem {
	parts := lineInProblem.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(parts[1])
	text := keyGivenTwice.ReplaceAllString(parts[2], "key $1 is given twice")
	return &problem{line: line, text: quotedValue.ReplaceAllString(text, "")}
}

// canonicalJSON returns the object as JSON with sorted keys, without metadata.managedFields. The object is not changed.
func canonicalJSON(object map[string]any) ([]byte, error) {
	if metadata, ok := object["metadata"].(map[string]any); ok && hasKey(metadata, "managedFields") {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object = maps.Clone(object)
		object["metadata"] = metadata
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), newline), nil
}

func hasKey(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}
