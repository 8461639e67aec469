package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{`C:\k\kubelet.conf`, `C:\k\kubelet.conf`},
		{"Größe 5 GB, 日本, \ufffd", "Größe 5 GB, 日本, \ufffd"},
		{"x\nwin-2: applied", `x\nwin-2: applied`},
		{"\r\x1b[2Kwin-2: applied", `\r\x1b[2Kwin-2: applied`},
		{"a\tb\x00\x7f", `a\tb\x00\x7f`},
		{"\u009b31m", `\u009b31m`},
		{"\u202eexe.gpj", `\u202eexe.gpj`},
		{"a\u2028b", `a\u2028b`},
		{"\xff\xfe", `\xff\xfe`},
	} {
		if got := Plain(tt.text); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
	}
}

// verb is a string type, as those of actions.
type verb string

// place is a Stringer.
type place struct{ name string }

func (p place) String() string { return p.name }

func TestMessagesAreOneLine(t *testing.T) {
	const bad = "x\nhost: applied\x1b[1m"
	for _, arg := range []any{bad, verb(bad), place{bad}, &place{bad}} {
		var out strings.Builder
		Printf(&out, "%s\n", arg)
		if want := `x\nhost: applied\x1b[1m` + "\n"; out.String() != want {
			t.Errorf("%T: %q, want %q", arg, out.String(), want)
		}
	}
	var out strings.Builder
	Printf(&out, "%s %d %v %-3s|\n", Ready("\x1b[1mbold\x1b[0m"), 5, errors.Join(errors.New("one\x07"), fmt.Errorf("two")), "a")
	if want := "\x1b[1mbold\x1b[0m 5 one\\a; two a  |\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	if err := PrintText(&out, "a\n\tb\r\n\x1bc\rd\r"); err != nil || out.String() != "a\n\tb\r\n\\x1bc\\rd\\r" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// What the programs print for people goes through Printf and PrintText. Generated documents are no messages.
func TestProgramsPrintNothingElse(t *testing.T) {
	files, err := filepath.Glob("../../cmd/*/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "docs") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			for _, call := range []string{"fmt.Fprint", "fmt.Print"} {
				if strings.Contains(line, call) {
					t.Errorf("%s:%d: %s: print with cli.Printf or cli.PrintText", file, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
