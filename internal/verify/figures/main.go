// Figures prints what a reader of this repository meets, area by area: lines that either program links, of product and
// of tests, lines that are long, how names and texts read. It is no check: it shows which way a change goes. Each
// figure stands beside that of .ci/figures, where it differs.
//
//	figures [-changes | -update] [TREE]
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	var o options
	flag.BoolVar(&o.update, "update", false, "write the figures to .ci/figures")
	flag.BoolVar(&o.changes, "changes", false, "print those alone that differ from .ci/figures")
	flag.Usage = func() { _, _ = fmt.Fprintln(os.Stderr, "usage: figures [-changes | -update] [TREE]") }
	flag.Parse()
	if err := run(context.Background(), cmp.Or(flag.Arg(0), "."), o, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

type options struct{ update, changes bool }

// figure is one number, with its name.
type figure struct{ what, is string }

func run(ctx context.Context, tree string, o options, to io.Writer) error {
	list, err := countAll(ctx, tree)
	if err != nil {
		return err
	}
	file := filepath.Join(tree, ".ci", "figures")
	if o.update {
		var text strings.Builder
		for _, f := range list {
			fmt.Fprintf(&text, "%s\t%s\n", f.is, f.what)
		}
		return os.WriteFile(file, []byte(text.String()), 0o644) //nolint:gosec // it is for all readers
	}
	before, err := readFigures(file)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range list {
		note, isChanged := "", before[f.what] != f.is
		if was, ok := before[f.what]; ok && isChanged {
			note = "was " + was
		}
		if o.changes && !isChanged {
			continue
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.is, note, f.what); err != nil {
			return err
		}
	}
	return table.Flush()
}

// readFigures returns the figures of a file by what they count; none where there is no file.
func readFigures(file string) (map[string]string, error) {
	before := map[string]string{}
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return before, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		is, what, _ := strings.Cut(lines.Text(), "\t")
		before[what] = is
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return before, f.Close()
}
