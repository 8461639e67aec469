package testrun

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
)

// event is a line of go test -json: of a test, of a package (without a test), or of a build (with an import path).
type event struct {
	Action      string
	Package     string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
	ImportPath  string
}

// maxLine is the longest line of go test in bytes. A test may print a long one.
const maxLine = 64 << 20

// readEvents calls each for every event. Lines that are no events, such as messages of the go command, are passed on as
// output of a build.
func readEvents(r io.Reader, each func(event)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			e = event{Action: "build-output", Output: lines.Text() + "\n"}
		}
		each(e)
	}
	return lines.Err()
}

// testName is one test of one package; subtests have a slash.
type testName struct{ pkg, test string }

// root is the test of the source that a subtest belongs to.
func (n testName) root() testName {
	test, _, _ := strings.Cut(n.test, "/")
	return testName{n.pkg, test}
}
