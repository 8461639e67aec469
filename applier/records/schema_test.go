package records

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the list of fields, and fail")

// An older program refuses unknown fields as damage, so that records of a new form need a new Schema. This list of all fields,
// those of manifests too, shows when.
func TestAFieldOfARecordIsAddedWithANewSchema(t *testing.T) {
	var got strings.Builder
	for _, record := range []any{Ledger{}, Journal{}, Cache{}} {
		fields(&got, reflect.TypeOf(record), reflect.TypeOf(record).Name(), nil)
	}
	path := fmt.Sprintf("testdata/schema-%d.txt", Schema)
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatal("rewritten; run again without -update")
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (fix: go test ./applier/records -update)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("fields of records have changed (fix: raise records.Schema, then go test ./applier/records -update)\n(-want +got):\n%s", diff)
	}
}

// fields writes a line for each JSON field of a type, down to the bottom.
func fields(out *strings.Builder, t reflect.Type, path string, above []reflect.Type) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
		path += "[]"
	}
	if t.Kind() != reflect.Struct || t.PkgPath() == "time" {
		fmt.Fprintf(out, "%s %s\n", path, t.Kind())
		return
	}
	for _, a := range above {
		if a == t {
			return
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields(out, f.Type, path, append(above, t))
		case name != "-" && f.IsExported():
			fields(out, f.Type, path+"."+name, append(above, t))
		}
	}
}
