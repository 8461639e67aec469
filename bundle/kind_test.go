package bundle

import (
	"reflect"
	"testing"
)

// A list without a description would be left out of digests' checks, of comparisons and of everything that shows entries.
func TestEveryListOfALayerHasADescription(t *testing.T) {
	lists := reflect.TypeFor[Layer]()
	for i := range lists.NumField() {
		field := lists.Field(i)
		l := Layer{}
		value := reflect.ValueOf(&l).Elem().Field(i)
		switch {
		case field.Type.Kind() == reflect.Slice:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		case field.Type == reflect.TypeFor[HostName]():
			l.HostName.Name = "name"
		default:
			continue // what a layer is, and no list
		}
		if ids := l.IDs(); len(ids) != 1 {
			t.Errorf("%s: %d descriptions, want 1", field.Name, len(ids))
		}
		if n := len(Bundle{Cluster: l}.entriesByID()); n != 1 {
			t.Errorf("%s: a comparison sees %d entries, want 1", field.Name, n)
		}
	}
}

func TestDescriptionsAreComplete(t *testing.T) {
	seen := map[EntryKind]bool{}
	for _, k := range Kinds() {
		if k.Kind == "" || k.Section == "" || seen[k.Kind] {
			t.Errorf("a description lacks its kind or section, or is listed twice: %+v", k)
		}
		seen[k.Kind] = true
		if Describe(k.Kind) != k {
			t.Errorf("Describe(%s) is %+v", k.Kind, Describe(k.Kind))
		}
		if texts := k.Plural != ""; texts != (k.Section == SectionHost && k.Kind != KindEnvironment) {
			t.Errorf("%s: in the summary of the host is %v", k.Kind, texts)
		}
	}
	if d := Describe("unknown"); d != (Kind{}) {
		t.Errorf("an unknown kind is described as %+v", d)
	}
}
