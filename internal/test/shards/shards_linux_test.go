package shards_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wmco/internal/test/shards"
)

const (
	// failVariable names a test that fails.
	failVariable = "WMCO_TEST_OF_SHARDS_FAILS"
	// folderVariable is where each test writes down in which process it ran.
	folderVariable = "WMCO_TEST_OF_SHARDS_FOLDER"
)

func TestMain(m *testing.M) {
	note := func(name string) func() error {
		return func() error {
			if folder := os.Getenv(folderVariable); folder != "" {
				return os.WriteFile(filepath.Join(folder, name), nil, 0o600)
			}
			return nil
		}
	}
	os.Exit(shards.Run(shards.Options{Processes: 2, Begin: note("begun"), End: note("ended")}, m.Run))
}

// keepProcess writes down which process runs the test.
func keepProcess(t *testing.T) {
	t.Helper()
	if os.Getenv(failVariable) == t.Name() {
		t.Fatal("as told")
	}
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, t.Name()), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFirst(t *testing.T)  { keepProcess(t) }
func TestSecond(t *testing.T) { keepProcess(t) }
func TestThird(t *testing.T)  { keepProcess(t) }
func TestFourth(t *testing.T) { keepProcess(t) }

// runTests runs this program again, with all tests of a pattern but those that do so themselves.
func runTests(t *testing.T, pattern string, variables ...string) (output string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+pattern)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WMCO_TEST_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(append(c.Env, innerVariable+"=yes"), variables...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// innerVariable tells a process that another one of this program started it.
const innerVariable = "WMCO_TEST_OF_SHARDS_INNER"

// TestTheyRunInTwoProcesses, and in no third one. Few of them run in one.
func TestTheyRunInTwoProcesses(t *testing.T) {
	if os.Getenv(innerVariable) != "" {
		return
	}
	for pattern, split := range map[string]bool{"": true, "^(TestFirst|TestSecond|TestThird|TestFourth)$": true, "^Test(First|Second|Third)$": false} {
		folder := t.TempDir()
		if out, err := runTests(t, pattern, folderVariable+"="+folder); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		read := func(name string) string {
			data, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Error(err)
			}
			return string(data)
		}
		first, second, third := read("TestFirst"), read("TestSecond"), read("TestThird")
		if first != third || (first != second) != split {
			t.Errorf("%q: processes %s, %s, %s", pattern, first, second, third)
		}
		for _, name := range []string{"begun", "ended"} {
			if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != (pattern == "") {
				t.Errorf("%q: %s: %v", pattern, name, err)
			}
		}
	}
}

// TestAFailureInAnyProcessFailsAll runs this program again with a test that fails.
func TestAFailureInAnyProcessFailsAll(t *testing.T) {
	if os.Getenv(innerVariable) != "" {
		return
	}
	for _, name := range []string{"TestFirst", "TestSecond"} {
		if out, err := runTests(t, "", failVariable+"="+name); err == nil || !strings.Contains(out, "--- FAIL: "+name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
