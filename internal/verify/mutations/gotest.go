package mutations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	// testLimit is how long the tests of one mutation may run. One that waits for ever because of the mutation fails at
	// this time.
	testLimit = 10 * time.Minute
	// endsWithin is how long processes have to end after an interrupt, before they are killed.
	endsWithin = 20 * time.Second
	// shownOutput is how many bytes of the output of a test are shown, from its end.
	shownOutput = 4000
)

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

// tested is what became of tests.
type tested struct {
	// results are pass, fail or skip, by test.
	results map[string]string
	// output is what was printed, printed what each test printed.
	output  string
	printed map[string]string
	// failed reports whether go test failed, unbuilt whether it could not build the tests.
	failed, unbuilt bool
}

// goCommand returns a command in the copy that ends with everything that it has started when the context does.
func (t tree) goCommand(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = t.at, goEnvironment(os.Environ())
	cmd.WaitDelay = endsWithin
	endAsGroup(cmd)
	return cmd
}

// places are the variables of the Makefile that say where programs for tests are.
var places = []string{"WMCO_WINE", "WMCO_CONTAINERD"}

// goEnvironment returns variables without those that make tests longer or shorter: a test kills a mutation in its usual
// size.
func goEnvironment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "WMCO_") && !slices.Contains(places, name)
	})
}

// runTests runs tests of a package. A failure of tests is no error.
func (t tree) runTests(ctx context.Context, pkg string, tests []string, args ...string) (tested, error) {
	args = append([]string{"test", "-json", "-vet=off", "-timeout", testLimit.String(), "-run", namePattern(tests)}, append(args, pkg)...)
	var out, problems bytes.Buffer
	cmd := t.goCommand(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if ctx.Err() != nil {
		return tested{}, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return tested{}, fmt.Errorf("running go test: %w", err)
	}
	done, decodeErr := decodeEvents(&out)
	if decodeErr != nil {
		return tested{}, decodeErr
	}
	done.failed = err != nil
	done.output += problems.String()
	return done, nil
}

// decodeEvents reads what go test -json prints.
func decodeEvents(r io.Reader) (tested, error) {
	done := tested{results: map[string]string{}, printed: map[string]string{}}
	var output strings.Builder
	for dec := json.NewDecoder(r); ; {
		var e event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tested{}, fmt.Errorf("reading the output of go test: %w", err)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			if e.Test != "" {
				done.results[e.Test] = e.Action
			}
		case "output", "build-output":
			output.WriteString(e.Output)
			done.printed[e.Test] += e.Output
		case "build-fail":
			done.unbuilt = true
		}
	}
	done.output = output.String()
	return done, nil
}

// by returns what a test and its parts have printed.
func (done tested) by(test string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(done.printed)) {
		if name == test || strings.HasPrefix(name, test+"/") {
			text.WriteString(done.printed[name])
		}
	}
	return text.String()
}

// lastLines returns the end of an output.
func lastLines(output string) string {
	output = strings.TrimSpace(output)
	if len(output) <= shownOutput {
		return output
	}
	return "...\n" + strings.ToValidUTF8(output[len(output)-shownOutput:], "")
}
