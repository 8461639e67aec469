// Package count writes numbers of things in messages.
package count

import "fmt"

// Of returns the number with its noun: "1 error", "2 errors". The plural ends in s.
func Of[N ~int | ~int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
