package base

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage there may be beside what is in use before it is collected, in percent. Go's default is 100: an operator of a large
// fleet would have its Nodes in memory twice. With 50 it collects twice as often.
const garbagePercent = 50

// LimitGarbage has this process collect garbage earlier, unless its environment says when (GOGC; pkg.go.dev/runtime).
func LimitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
