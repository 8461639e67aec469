package render

import (
	"fmt"

	"wmco/render/yamltext"
)

// maxSettings is the size of the largest settings, in bytes, with the aliases of YAML replaced. All fields of a kubelet
// are some kilobytes.
const maxSettings = 64 << 10

// checkSettingsText returns the problem of a text that must not be decoded, empty if it may be.
func checkSettingsText(text []byte) string {
	if len(text) > maxSettings {
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(text), maxSettings)
	}
	if yamltext.HasSecondDocument(text) {
		return "has a second document, below a line with ---, which is not read: write all settings into one"
	}
	if beyond, err := yamltext.ExpandsBeyond(text, maxSettings); err != nil || !beyond {
		return "" // the decoder reports invalid YAML
	}
	return fmt.Sprintf("has aliases that expand to more than %d bytes", maxSettings)
}
