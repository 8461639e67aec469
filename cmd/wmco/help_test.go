package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"wmco/internal/cli"
)

// TestHelpFitsTheTerminal: no line of any help is longer than a terminal of the usual width, under each name of the program.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, name := range []string{"", "kubectl windows"} {
		root := rootCommand(app{name: name, now: time.Now})
		lines := 0
		var check func(c *cobra.Command)
		check = func(c *cobra.Command) {
			var out bytes.Buffer
			c.SetOut(&out)
			if err := c.Help(); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(out.String(), "\n") {
				lines++
				if n := utf8.RuneCountInString(line); n > cli.Columns {
					t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
				}
			}
			for _, below := range c.Commands() {
				check(below)
			}
		}
		check(root)
		if lines < 300 {
			t.Errorf("%d lines of help", lines)
		}
	}
}
