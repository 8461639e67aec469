package release

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// SumsFile has the checksums, in the form that sha256sum --check reads.
const SumsFile = "SHA256SUMS"

// Sums writes SumsFile for all files of a folder, and prints them as a table with their sizes.
func Sums(dir string, w io.Writer) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tBYTES\tSHA256")
	for _, name := range names {
		at := filepath.Join(dir, filepath.FromSlash(name))
		sum, err := sumOf(at)
		if err != nil {
			return err
		}
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
		fmt.Fprintf(table, "%s\t%d\t%s\n", name, info.Size(), sum)
	}
	if err := os.WriteFile(filepath.Join(dir, SumsFile), []byte(sums.String()), modeFile); err != nil {
		return err
	}
	return table.Flush()
}

// namesIn returns the files of a folder and those below, with slashes, sorted, without the checksums.
func namesIn(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, at)
		if name := filepath.ToSlash(relative); name != SumsFile {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}
