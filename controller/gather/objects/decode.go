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

// maxObject is the largest object that is parsed, in bytes as it is written: etcd holds 1.5 MiB at most, and what is
// indented and has quotes escaped stays well below twice that.
const maxObject = 4 << 20

// problem is why a text cannot be parsed.
type problem struct {
	// line is counted from 1 in the text that was parsed; 0 where the parser named none.
	line int
	// text is what the parser says. It may quote the document.
	text string
	// isOurs says that the text quotes nothing.
	isOurs bool
	// isJSON says that the text is JSON and nothing else, so that no other parser need be asked.
	isJSON bool
}

var (
	lineInProblem = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:)?\s*(?:line (\d+): )?([^\n]*)`)
	quotedValue   = regexp.MustCompile("(?: `|: map\\[|: \\[).*")
	keyGivenTwice = regexp.MustCompile(`^key (".*") already set in map$`)
)

// decode parses the content of a segment, strictly.
func decode(s segment) (any, *problem) {
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

// blankedUpTo copies the text with blanks in place of the dash, and of the comments, before its content: an item alone
// is a document.
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
		// The strict parser takes a key that overrides a merged one (<<) for one given twice.
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

// newYAMLProblem takes the first line of what the parser says apart, and leaves out the values that it quotes.
func newYAMLProblem(err error) *problem {
	parts := lineInProblem.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(parts[1])
	text := keyGivenTwice.ReplaceAllString(parts[2], "key $1 is given twice")
	return &problem{line: line, text: quotedValue.ReplaceAllString(text, "")}
}

// canonical is the object as JSON with sorted keys, without metadata.managedFields. The object is left as it is.
func canonical(object map[string]any) ([]byte, error) {
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
