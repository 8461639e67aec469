// Figures prints what a reader of this repository meets: packages and imports of controller/, names and branches of functions, and words that
// say little. It is no check: it shows which way a change goes. "make figures" runs it; an argument names another tree.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	flag.Usage = func() { _, _ = fmt.Fprintln(os.Stderr, "usage: figures [TREE]") }
	flag.Parse()
	if err := run(cmp.Or(flag.Arg(0), "."), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// row is one figure.
type row struct {
	what string
	is   string
}

func run(tree string, to io.Writer) error {
	sources, err := readSources(tree)
	if err != nil {
		return err
	}
	rows := append(countPackages(sources), countRoot(sources)...)
	rows = append(rows, countNames(sources)...)
	rows = append(rows, countBranches(sources)...)
	rows = append(rows, countCalls(sources)...)
	words, err := countWords(tree)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, r := range append(rows, words) {
		if _, err := fmt.Fprintf(table, "%s\t%s\n", r.is, r.what); err != nil {
			return err
		}
	}
	return table.Flush()
}
