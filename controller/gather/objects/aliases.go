package objects

import (
	"bytes"
	"regexp"

	yamlnode "go.yaml.in/yaml/v3"
)

// aliasToken matches what may be a YAML alias.
var aliasToken = regexp.MustCompile(`(?:^|[\s\[{,:?-])\*[0-9A-Za-z_-]`)

// checkAliases refuses a document whose aliases expand to more than an object may have, before it is parsed.
func checkAliases(text []byte) *problem {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 || !aliasToken.Match(text) {
		return nil
	}
	var document yamlnode.Node
	if err := yamlnode.Unmarshal(text, &document); err != nil {
		return newYAMLProblem(err)
	}
	if (expansion{}).sizeAsJSON(&document) > maxObject {
		return &problem{text: "its YAML aliases expand to more than " + sizeText(maxObject), isOurs: true}
	}
	return nil
}

// expansion holds the size of each anchored node with all its aliases replaced.
type expansion map[*yamlnode.Node]int

// sizeAsJSON returns about the number of bytes of a node as JSON. Beyond maxObject it is not exact.
func (e expansion) sizeAsJSON(n *yamlnode.Node) int {
	if n.Kind == yamlnode.AliasNode {
		return e.sizeAsJSON(n.Alias)
	}
	if known, ok := e[n]; ok {
		return known
	}
	if n.Anchor != "" {
		e[n] = maxObject + 1 // until it is known: a node that holds itself is endless
	}
	total := len(n.Value) + 1
	for _, child := range n.Content {
		if total += e.sizeAsJSON(child); total > maxObject {
			break
		}
	}
	if n.Anchor != "" {
		e[n] = total
	}
	return total
}

// hasKeyTwice reports whether a mapping has a key twice without counting the keys of merged mappings.
func hasKeyTwice(text []byte) bool {
	var document yamlnode.Node
	return yamlnode.Unmarshal(text, &document) != nil || hasDuplicate(&document)
}

func hasDuplicate(n *yamlnode.Node) bool {
	seen := make(map[string]bool)
	for i, child := range n.Content {
		if n.Kind == yamlnode.MappingNode && i%2 == 0 {
			if seen[child.Value] {
				return true
			}
			seen[child.Value] = true
		}
		if hasDuplicate(child) {
			return true
		}
	}
	return false
}
