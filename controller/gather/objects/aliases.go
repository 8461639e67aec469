package objects

import (
	yamlnode "go.yaml.in/yaml/v3"

	"wmco/render/yamltext"
)

// checkAliases refuses a document whose aliases expand to more than an object may have, before it is parsed.
func checkAliases(text []byte) *problem {
	switch beyond, err := yamltext.ExpandsBeyond(text, maxObject); {
	case err != nil:
		return newYAMLProblem(err)
	case beyond:
		return &problem{text: "its YAML aliases expand to more than " + sizeText(maxObject), isOurs: true}
	}
	return nil
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
