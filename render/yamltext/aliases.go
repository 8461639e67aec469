// Package yamltext limits the expansion of YAML aliases before a text is decoded. An alias of three bytes stands for a
// whole part of the text: a decoder that writes JSON, as sigs.k8s.io/yaml does, makes gigabytes of a hundred kilobytes.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	decoder "sigs.k8s.io/yaml"
)

// ExpandsBeyond reports whether the aliases of a text expand to more than so many bytes. The error is that of the
// parser; a text without aliases is not parsed.
func ExpandsBeyond(text []byte, most int) (bool, error) {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return false, nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return false, err
	}
	return expansion{map[*yaml.Node]int{}, most}.size(&document) > most, nil
}

// HasSecondDocument reports whether there is more in a text than its first document, which is the only one that a
// decoder of one object reads.
func HasSecondDocument(text []byte) bool {
	if !bytes.Contains(text, []byte("---")) {
		return false
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if documents.Decode(&first) != nil {
		return false
	}
	err := documents.Decode(&second)
	return err != nil && !errors.Is(err, io.EOF) || err == nil && second.Content[0].Tag != "!!null"
}

// maxFile is what the aliases of a file may expand to, in bytes.
const maxFile = 16 << 20

// UnmarshalStrict is that of sigs.k8s.io/yaml for a file that others may have written.
func UnmarshalStrict(text []byte, into any) error {
	switch beyond, err := ExpandsBeyond(text, maxFile); {
	case err != nil:
		return err
	case beyond:
		return fmt.Errorf("its aliases expand to more than %d bytes", maxFile)
	}
	return decoder.UnmarshalStrict(text, into)
}

// expansion is how large a text is with all its aliases replaced.
type expansion struct {
	// anchored holds the size of each node with an anchor.
	anchored map[*yaml.Node]int
	most     int
}

// size returns about the number of bytes of a node as JSON. Beyond the limit it is not exact.
func (e expansion) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return e.size(n.Alias)
	}
	if known, ok := e.anchored[n]; ok {
		return known
	}
	if n.Anchor != "" {
		e.anchored[n] = e.most + 1 // until it is known: a node that holds itself is endless
	}
	total := len(n.Value) + 1
	for _, child := range n.Content {
		if total += e.size(child); total > e.most {
			break
		}
	}
	if n.Anchor != "" {
		e.anchored[n] = total
	}
	return total
}
