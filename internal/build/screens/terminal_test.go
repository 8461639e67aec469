package screens

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts returns what a picture shows, line by line.
func texts(t *testing.T, picture []byte) []string {
	t.Helper()
	var list []string
	in := ""
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			in = x.Name.Local
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "text" {
				list = append(list, string(x))
			}
		}
	}
}

func TestDraw(t *testing.T) {
	picture := Draw("wmco status", "a <b> & \"c\"\n\n  123456789012345\nlast   \n", 12)
	want := []string{"$ wmco status", `a <b> & "c"`, "  1234567890", "12345", "last"}
	if diff := cmp.Diff(want, texts(t, picture)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := bytes.Count(picture, []byte(`<text xml:space="preserve" `)); n != len(want) || bytes.Contains(picture, []byte(`<g xml:space`)) {
		t.Errorf("%d texts keep their spaces in Chromium, want %d", n, len(want))
	}
	if again := Draw("wmco status", "a <b> & \"c\"\n\n  123456789012345\nlast   \n", 12); !bytes.Equal(picture, again) {
		t.Error("another picture of the same text")
	}
}

// TestFleetIsAnExample: without a scene, every node has its bundle, and every scene can be staged.
func TestFleetIsAnExample(t *testing.T) {
	for _, s := range Scenes() {
		f, err := NewFleet(t.Context(), "../../../golden", noon())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stage(t.Context(), f); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		list, err := f.Objects()
		if err != nil || len(f.Nodes) != len(instances()) {
			t.Fatalf("%s: %d nodes, %v", s.Name, len(f.Nodes), err)
		}
		kinds := map[string]int{}
		for _, o := range list {
			kinds[o.GetKind()]++
		}
		if kinds["Node"] < len(instances()) || kinds["Secret"] < 2 || !slices.Contains([]int{0, 1}, kinds["WindowsNodesStatus"]) {
			t.Errorf("%s: %v", s.Name, kinds)
		}
	}
}
