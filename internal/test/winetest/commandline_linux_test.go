package winetest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestCommandLinesArriveAsTheirArguments checks bundle.CommandLine with those who parse its lines: the start of a process, the
// runtime of Go and CommandLineToArgvW.
func TestCommandLinesArriveAsTheirArguments(t *testing.T) {
	t.Parallel()
	const plain, blank = `C:\k\args.exe`, `C:\k dir\args.exe`
	p := New(t)
	p.Build(t, plain, ".", "./testdata/args")
	p.WriteFile(t, blank, p.ReadFile(t, plain))
	argvs := [][]string{{blank}, {blank, ""}, {blank, "a b", `C:\my dir\`}}
	for _, args := range argumentLists() {
		argvs = append(argvs, append([]string{plain}, args...))
	}
	var lines []string
	for _, argv := range argvs {
		lines = append(lines, bundle.CommandLine(argv))
	}
	stdin, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Run(t, Command{Path: plain, Stdin: string(stdin)})
	if r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	type seen struct{ Go, Windows []string }
	var got [][]seen
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, r.Stdout)
	}
	if len(got) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(got), len(lines))
	}
	for i, argv := range argvs {
		want := []seen{{Go: argv, Windows: argv}, {Go: argv, Windows: argv}}
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lines[i], diff)
		}
	}
}

// argumentLists returns lists with one difficulty each, and one with every string of up to three special characters.
func argumentLists() [][]string {
	lists := [][]string{
		nil,
		{""},
		{"", ""},
		{"a", "", "b"},
		{"a b", "\t", "  "},
		{`"`, `""`, `say "hi"`, `"quoted"`, `a"b`},
		{`\`, `\\`, `C:\dir\`, `C:\my dir\`, `C:\my dir\\`, `\\server\share\`},
		{`\"`, `\\"`, `a\"b c`, `a\\" \"`},
		{`--flag="C:\k dir\x"`, `--kubeconfig=C:\k\kubeconfig`, `--node-labels=a=b,c=d`},
		{"%PATH%", "$(x)", "^", "&", "|", "<", ">", "*", "?", "'", "`", ";", ",", "ünï", "日本"},
		{"\n", "\v", "a\r\nb"},
	}
	characters := []string{"", " ", "\t", `"`, `\`, "a"}
	var all []string
	for _, a := range characters {
		for _, b := range characters {
			for _, c := range characters {
				all = append(all, a+b+c)
			}
		}
	}
	return append(lists, all)
}
