package testrun

import (
	"maps"
	"slices"
	"strings"
)

// skipped is a test that did not run, and why.
type skipped struct {
	name   testName
	reason string
}

// failure is a test that failed, or a package without a test that did: its build, or its TestMain.
type failure struct {
	name   testName
	output []string
}

// collected is the output of one go test. A test that passes leaves nothing but its count.
type collected struct {
	// running is the output of what has not ended, by name; the package itself has no test.
	running map[testName][]string
	// results are the last actions of tests: pass, fail or skip.
	results  map[testName]string
	skips    []skipped
	failures []failure
	builds   []string
	// broken are packages that failed without a failed test.
	broken map[string]bool
}

func newCollected() *collected {
	return &collected{running: map[testName][]string{}, results: map[testName]string{}, broken: map[string]bool{}}
}

// addEvent notes an event. It reports whether a package has ended with it.
func (c *collected) addEvent(e event) (ended bool) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		c.builds = append(c.builds, e.Output)
	case "output":
		c.running[name] = append(c.running[name], e.Output)
	case "pass", "fail", "skip":
		c.noteEnd(name, e.Action)
		return e.Test == ""
	}
	return false
}

func (c *collected) noteEnd(name testName, action string) {
	output := c.running[name]
	delete(c.running, name)
	if name.test == "" {
		c.endPackage(name, action, output)
		return
	}
	c.results[name] = action
	switch {
	case action == "skip":
		c.skips = append(c.skips, skipped{name, reasonOf(output)})
	case action == "fail" && (!c.hasFailedPart(name) || len(reasonLines(output)) > 0):
		c.failures = append(c.failures, failure{name, output})
	}
}

// endPackage notes the end of a package. Tests that had begun and not ended, as in a panic, have failed.
func (c *collected) endPackage(name testName, action string, output []string) {
	for _, other := range slices.SortedFunc(maps.Keys(c.running), compareNames) {
		if other.pkg == name.pkg && action == "fail" && c.results[other] == "" {
			c.noteEnd(other, "fail")
		}
	}
	failed := slices.ContainsFunc(c.failures, func(f failure) bool { return f.name.pkg == name.pkg })
	if action == "fail" && !failed {
		c.broken[name.pkg] = true
		c.failures = append(c.failures, failure{name, append(slices.Clone(c.builds), output...)})
	}
	c.builds = nil
}

// hasFailedPart reports whether a subtest of the test failed: it has the reason.
func (c *collected) hasFailedPart(name testName) bool {
	for _, f := range c.failures {
		if f.name.pkg == name.pkg && strings.HasPrefix(f.name.test, name.test+"/") {
			return true
		}
	}
	return false
}

// countEnded returns how many tests have ended with the action.
func (c *collected) countEnded(action string) int {
	n := 0
	for _, a := range c.results {
		if a == action {
			n++
		}
	}
	return n
}

func compareNames(a, b testName) int {
	return strings.Compare(a.pkg+"\x00"+a.test, b.pkg+"\x00"+b.test)
}
