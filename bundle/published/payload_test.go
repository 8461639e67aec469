package published

import (
	"testing"

	"wmco/bundle"
)

func TestExecutablesAreCopiedBeforeTheirBundleIsPublished(t *testing.T) {
	older, newer := bundle.Of([]byte("older")), bundle.Of([]byte("newer"))
	on := func(payload, copied bundle.Digest) map[string]string {
		d := desired(t)
		d.Payload = payload
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{DesiredAnnotation: text, PayloadAnnotation: string(copied)}
	}
	for name, tt := range map[string]struct {
		annotations map[string]string
		payload     bundle.Digest
		want        bool
	}{
		"another payload":                   {on(older, ""), newer, true},
		"a bundle that does not say":        {on("", ""), newer, true},
		"another one was copied":            {on(older, older), newer, true},
		"it was copied":                     {on(older, newer), newer, false},
		"the bundle has it":                 {on(newer, ""), newer, false},
		"back to the one before":            {on(newer, newer), older, true},
		"an operator without executables":   {on(older, ""), "", false},
		"a node that has just joined":       {nil, newer, false},
		"an annotation that cannot be read": {map[string]string{DesiredAnnotation: "{"}, newer, false},
	} {
		if got := PayloadPending(tt.annotations, tt.payload); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
