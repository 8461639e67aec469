package yamltext

import (
	"strings"
	"testing"
)

func TestWhatAliasesExpandTo(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"no alias":                    {"a: " + text + text + text, false},
		"an anchor and no alias":      {"a: &a " + text, false},
		"an alias that fits":          {"a: &a " + text + "\nb: *a", false},
		"aliases that do not":         {"a: &a " + text + "\nb: [*a,*a,*a]", true},
		"aliases of aliases":          {"a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]", true},
		"merged keys":                 {"a: &a {k: " + text + "}\nb: {<<: *a}\nc: {<<: *a}\nd: {<<: *a}", true},
		"an anchor that holds itself": {"a: &a [*a]", true},
		"what looks like an alias":    {"a: 'x & y *z'", false},
	} {
		got, err := ExpandsBeyond([]byte(tt.text), 3000)
		if err != nil || got != tt.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if _, err := ExpandsBeyond([]byte("a: &a [*b"), 3000); err == nil {
		t.Error("an alias of nothing")
	}
}

func TestASecondDocument(t *testing.T) {
	for text, want := range map[string]bool{
		"a: 1\n---\nb: 2\n": true, "---\na: 1\n---\n[]\n": true, "a: 1\n---\n# nothing\n": false, "---\na: 1\n": false, "a: 1\n...\n": false, "a: '---'": false, "": false,
		"a: [\n---\nb: 2": false, "a: 1\n---\nb: [": true,
	} {
		if got := HasSecondDocument([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestAFileIsDecodedWithinItsBound(t *testing.T) {
	var into struct{ A, B []string }
	if err := UnmarshalStrict([]byte("a: &a [x, y]\nb: *a"), &into); err != nil || len(into.B) != 2 {
		t.Errorf("%v, %v", into, err)
	}
	for text, want := range map[string]string{
		"a: [&a '" + strings.Repeat("x", 64<<10) + "', " + strings.Repeat("*a,", 300) + "x]": "expand to more than", "c: 1": "unknown field", "a: [*b]": "unknown anchor",
	} {
		if err := UnmarshalStrict([]byte(text), &into); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", text, err, want)
		}
	}
}
