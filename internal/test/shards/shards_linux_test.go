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

const failVariable = "WMCO_TEST_SHARDS_FAIL"

func TestMain(m *testing.M) { os.Exit(shards.Run(2, "TestAllOthersHaveRunInTwoProcesses", m.Run)) }

// keepProcess writes down which process runs the test.
func keepProcess(t *testing.T) {
	t.Helper()
	if shards.ResultFolder() == "" {
		t.Skip("this test was chosen")
	}
	if os.Getenv(failVariable) == t.Name() {
		t.Fatal("as told")
	}
	if err := os.WriteFile(filepath.Join(shards.ResultFolder(), t.Name()), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFirst(t *testing.T)  { keepProcess(t) }
func TestSecond(t *testing.T) { keepProcess(t) }
func TestThird(t *testing.T)  { keepProcess(t) }

func TestAllOthersHaveRunInTwoProcesses(t *testing.T) {
	if shards.ResultFolder() == "" {
		t.Skip("this test was chosen")
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(shards.ResultFolder(), name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	first, second, third := read("TestFirst"), read("TestSecond"), read("TestThird")
	if first != third || first == second || first == strconv.Itoa(os.Getpid()) {
		t.Errorf("processes %s, %s, %s", first, second, third)
	}
}

// TestAFailureInAnyProcessFailsAll runs this program again with a test that fails.
func TestAFailureInAnyProcessFailsAll(t *testing.T) {
	if os.Getenv(failVariable) != "" {
		return
	}
	for _, name := range []string{"TestFirst", "TestSecond"} {
		c := exec.CommandContext(t.Context(), os.Args[0])
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "WMCO_TEST_SHARDS") {
				c.Env = append(c.Env, v)
			}
		}
		c.Env = append(c.Env, failVariable+"="+name)
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
