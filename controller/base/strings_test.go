package base

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unsafe"
)

// samePlace reports whether two strings are the same memory.
func samePlace(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// TestEqualStringsAreOne: long ones stay as they are.
func TestEqualStringsAreOne(t *testing.T) {
	var s sharedStrings
	for text, want := range map[string]bool{"kubernetes.io/os": true, strings.Repeat("x", longestShared): true, strings.Repeat("x", longestShared+1): false} {
		a, b := s.shareString(strings.Clone(text)), s.shareString(strings.Clone(text))
		if a != text || b != text || samePlace(a, b) != want {
			t.Errorf("%d bytes: %q and %q have one place in memory: %t", len(text), a, b, samePlace(a, b))
		}
	}
}

func TestMapsShareKeysAndValues(t *testing.T) {
	var s sharedStrings
	one, two := map[string]string{strings.Clone("key"): strings.Clone("value")}, map[string]string{strings.Clone("key"): strings.Clone("value")}
	a, b := s.shareMap(one), s.shareMap(two)
	if !maps.Equal(a, one) || !maps.Equal(b, two) {
		t.Errorf("%v and %v", a, b)
	}
	for k, v := range a {
		for l, w := range b {
			if !samePlace(k, l) || !samePlace(v, w) {
				t.Errorf("%s: %s has two places in memory", k, v)
			}
		}
	}
	if s.shareMap(nil) != nil {
		t.Error("no map has become one")
	}
}

// TestStringsAreForgotten: of Nodes that are gone, nothing stays for ever.
func TestStringsAreForgotten(t *testing.T) {
	var s sharedStrings
	for i := range 3 * mostShared {
		s.shareString(fmt.Sprint(i))
	}
	if n := len(s.known); n == 0 || n > mostShared {
		t.Errorf("%d strings are known, at most %d should be", n, mostShared)
	}
}
