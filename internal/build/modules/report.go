package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrNotServed is the error of ReportPins if a pin cannot be downloaded.
var ErrNotServed = errors.New("some pins are not served; fix: run go get MODULE@VERSION in the folder of the go.mod")

// ReportPins prints, for every go.mod below root, how many pins the module proxy serves, and those that it does not serve or
// does not list. It writes every pin to the file all, one per line: go.mod, pin, state, separated by tabs.
func ReportPins(ctx context.Context, root string, out io.Writer, all string) error {
	file, err := os.Create(all)
	if err != nil {
		return err
	}
	return errors.Join(reporter{out: out, all: file}.report(ctx, root), file.Close())
}

type reporter struct{ out, all io.Writer }

func (r reporter) report(ctx context.Context, root string) error {
	files, err := readFiles(ctx, root)
	if err != nil {
		return err
	}
	states, refused, err := served(ctx, unique(files))
	if err != nil {
		return err
	}
	var missing error
	for _, f := range files {
		if f.Err != nil {
			missing = ErrNotServed
			fmt.Fprintf(r.out, "%s: its pins are not known: %v\n", f.Path, f.Err)
			continue
		}
		count := map[state]int{}
		for _, p := range f.Pins {
			count[states[p]]++
			fmt.Fprintf(r.all, "%s\t%s\t%s\n", f.Path, p, states[p])
		}
		fmt.Fprintf(r.out, "%s: %d pins: %d listed, %d served but not listed, %d not served\n", f.Path, len(f.Pins), count[pinListed], count[pinUnlisted], count[pinNotServed])
		for _, p := range f.Pins {
			if states[p] == pinListed {
				continue
			}
			text := string(pinUnlisted)
			if states[p] == pinNotServed {
				missing, text = ErrNotServed, refused[p].Reason
			}
			fmt.Fprintf(r.out, "  %s: %s; nearest listed: %s\n", p, text, orNone(nearest(ctx, p)))
		}
	}
	return missing
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
