package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Format is how an answer is printed.
type Format string

const (
	// Text is for people.
	Text Format = "text"
	// JSON is for programs. It stays compatible.
	JSON Format = "json"
	// Markdown is for comments of pull requests.
	Markdown Format = "markdown"
	// YAML is JSON, written as YAML.
	YAML Format = "yaml"
	// Wide is text with all columns.
	Wide Format = "wide"
	// Name is the names alone, one a line.
	Name Format = "name"
)

// formatFlag is -o, with the formats that a command has.
type formatFlag struct {
	value *Format
	known []Format
}

// String implements pflag.Value.
func (f formatFlag) String() string { return string(*f.value) }

// Set implements pflag.Value.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.known, Format(s)) {
		return fmt.Errorf("must be one of %s", strings.Join(f.names(), ", "))
	}
	*f.value = Format(s)
	return nil
}

// Type is what help calls the value.
func (f formatFlag) Type() string { return "FORMAT" }

func (f formatFlag) names() []string {
	var names []string
	for _, k := range f.known {
		names = append(names, string(k))
	}
	return names
}

// AddFormat adds -o to a command, with a default and other formats.
func AddFormat(cmd *cobra.Command, f *Format, standard Format, others ...Format) {
	*f = standard
	flag := formatFlag{value: f, known: append([]Format{standard}, others...)}
	cmd.Flags().VarP(flag, "output", "o", "format of the answer: "+strings.Join(flag.names(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(flag.names(), cobra.ShellCompDirectiveNoFileComp))
}

// AddVersion adds --version to a program, which prints one line.
func AddVersion(root *cobra.Command, line string) {
	root.Version = line
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version") // cobra's own has the short form -v
}

// WriteJSON writes one value, indented.
func WriteJSON(w io.Writer, value any) error {
	enc := newEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// WriteJSONLine writes one value as a line: an answer of several values is one of several lines.
func WriteJSONLine(w io.Writer, value any) error { return newEncoder(w).Encode(value) }

func newEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
