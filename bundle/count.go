package bundle

import "fmt"

// Count returns a number of things for people to read: "1 action", "2 actions".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
