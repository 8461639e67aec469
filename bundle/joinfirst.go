package bundle

import (
	"fmt"
	"strings"
)

// JoinFirst joins the first few of a list for people, and ends with what rest returns for the number of those that are
// left out.
func JoinFirst(list []string, most int, separator string, rest func(left int) string) string {
	text := strings.Join(list[:min(len(list), most)], separator)
	if left := len(list) - most; left > 0 {
		text += rest(left)
	}
	return text
}

// AndOthers is the rest of a list of names: "a, b, and 2 others".
func AndOthers(left int) string { return ", and " + Count(left, "other") }

// AndMore is the rest of a list of texts: "a, b, and 2 more".
func AndMore(left int) string { return fmt.Sprintf(", and %d more", left) }
