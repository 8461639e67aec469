package bundle

import "testing"

func TestJoinFirst(t *testing.T) {
	for want, tt := range map[string]struct {
		list []string
		rest func(int) string
	}{
		"":                      {nil, AndOthers},
		"a":                     {[]string{"a"}, AndOthers},
		"a, b":                  {[]string{"a", "b"}, AndMore},
		"a, b, and 1 other":     {[]string{"a", "b", "c"}, AndOthers},
		"a, b, and 2 others":    {[]string{"a", "b", "c", "d"}, AndOthers},
		"a, b, and 3 more":      {[]string{"a", "b", "c", "d", "e"}, AndMore},
		"a, b (1 is left out)":  {[]string{"a", "b", "c"}, func(int) string { return " (1 is left out)" }},
		"a, b (2 are left out)": {[]string{"a", "b", "c", "d"}, func(int) string { return " (2 are left out)" }},
	} {
		if got := JoinFirst(tt.list, 2, ", ", tt.rest); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
