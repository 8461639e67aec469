package cli

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// copying is a command line with every kind of flag.
func copying(ctx context.Context, args []string) (status int, stderr string) {
	root := &cobra.Command{Use: "program"}
	cmd := &cobra.Command{Use: "copy FROM TO", RunE: func(*cobra.Command, []string) error { return nil }}
	flags := cmd.Flags()
	flags.Int("count", 1, "")
	flags.Duration("wait", time.Second, "")
	flags.Bool("force", false, "")
	for _, name := range []string{"key", "user", "ask", "host", "port"} {
		flags.String(name, "", "")
	}
	var f Format
	AddFormat(cmd, &f, Text, JSON)
	Expect(cmd, Usage{
		Args: []string{"FROM", "TO"},
		Needs: []Need{
			{Flags: []string{"key"}, Text: "give the key with --key"},
			{Flags: []string{"user", "ask"}, Text: "name the user with --user, or --ask"},
			{Flags: []string{"port"}, With: "host", Text: "give the port with --port"},
		},
		Alone: [][]string{{"user", "ask", "force"}, {"host", "force"}},
	})
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"copy"}, args...))
	var out bytes.Buffer
	root.SetErr(&out)
	return Execute(ctx, root, nil), out.String()
}

func TestCommandLinesAreCheckedAsAWhole(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "b", "--key=k", "--ask=x"}, ""},
		{[]string{"a", "b", "--key=k", "--user=u", "--host=h", "--port=1"}, ""},
		{nil, "FROM is missing: write program copy FROM TO; TO is missing: write program copy FROM TO; give the key with --key; name the user with --user, or --ask"},
		{[]string{"a", "b", "c", "d", "--key=k", "--ask=x"}, `unexpected argument "c"; unexpected argument "d"`},
		{[]string{"a", "b", "--key=k", "--ask=x", "--host=h"}, "give the port with --port"},
		{[]string{"a", "b", "--user=u", "--ask=x", "--force"}, "give the key with --key; give only one of --user, --ask and --force"},
		{[]string{"a", "b", "--key=k", "--ask=x", "--host=h", "--port=1", "--force"}, "give only one of --ask and --force; give only one of --host and --force"},
		{[]string{"--nothing"}, "program copy has no flag --nothing: program copy --help lists its flags"},
		{[]string{"-ox"}, "--output x: must be one of text, json"},
		{[]string{"-x"}, "program copy has no flag -x: program copy --help lists its flags"},
		{[]string{"--=x"}, "--=x is not a flag: program copy --help lists its flags"},
		{[]string{"--key"}, "--key needs a value"},
		{[]string{"-o"}, "--output needs a value"},
		{[]string{"--count", "many"}, "--count many: must be a whole number"},
		{[]string{"--wait", "5"}, "--wait 5: must be a duration such as 90s or 5m"},
		{[]string{"--force=perhaps"}, "--force perhaps: must be true or false"},
	} {
		wantStatus, want := ExitDone, ""
		if tt.want != "" {
			wantStatus, want = ExitUsage, "program: "+tt.want+"\n"
		}
		status, stderr := copying(t.Context(), tt.args)
		if diff := cmp.Diff(want, stderr); diff != "" || status != wantStatus {
			t.Errorf("%q: status %d (-want +got):\n%s", tt.args, status, diff)
		}
	}
}
