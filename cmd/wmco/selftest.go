package main

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/applier/selftest/result"
	"wmco/internal/cli"
)

func selftestCommand(a app) *cobra.Command {
	var f hostFlags
	var format cli.Format
	var options remote.SelfTestOptions
	var payload string
	cmd := &cobra.Command{
		Use:   "selftest --host [USER@]ADDR[:PORT] ...",
		Short: "Run the node agent's self-test on Windows hosts over SSH",
		Long: `Copy the node agent to spare hosts and run its self-test. It tests each behavior of Windows that the agent relies on, with files and
services of its own, and removes them afterwards. The agent's program stays on the host. A host that is a node is refused. With
-o json, the results contain neither names nor addresses of hosts, so you can send them to others.` +
			cli.ExitHelp(
				"0  every test passed or was skipped", "1  a test failed",
				"2  invalid usage, or a host is a node", "3  a host or the registry of --payload cannot be reached, or refuses the login",
				"4  a host cannot be prepared, or something is left on it", "130  interrupted",
			) +
			"\nOver several hosts the most severe status wins: 2, 4, 3, 1, 0.",
		Example: `  wmco selftest --payload bin/payload --host Administrator@10.0.0.5`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.selftest(cmd.Context(), a, selftestRun{format, options, payload})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(
		&payload, "payload", "",
		"folder with the Windows executables, or oci:IMAGE for those of an operator image; the node agent is copied to the hosts",
	)
	cmd.Flags().BoolVar(&options.OnNode, "on-node", false, "test hosts that are nodes of a cluster")
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsHosts(), needsProgram()}})
	return cmd
}

// selftestRun is what the flags of selftest say.
type selftestRun struct {
	format  cli.Format
	options remote.SelfTestOptions
	payload string
}

// testedJSON is one machine in the answer of `wmco selftest -o json`.
type testedJSON struct {
	Host string `json:"host"`
	// Result is absent where there is an Error.
	Result *result.Result `json:"result,omitempty"`
	Error  string         `json:"error,omitempty"`
	Fix    string         `json:"fix,omitempty"`
}

func (f *hostFlags) selftest(ctx context.Context, a app, run selftestRun) error {
	targets, client, err := f.newClient(ctx, a, run.payload)
	if err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	results := map[remote.Target]result.Result{}
	var mu sync.Mutex
	errs := client.ForEachHost(ctx, targets, f.parallel, func(ctx context.Context, m *remote.Agent) error {
		r, err := m.SelfTest(ctx, run.options)
		mu.Lock()
		defer mu.Unlock()
		results[m.Target()] = r
		return err
	})
	if err := client.Close(); err != nil {
		return err
	}
	return printTested(a, run.format, targets, results, errs)
}

func printTested(a app, format cli.Format, targets []remote.Target, results map[remote.Target]result.Result, errs []error) error {
	answer, status := []testedJSON{}, cli.ExitDone
	for i, t := range targets {
		entry := testedJSON{Host: t.String()}
		r := results[t]
		switch {
		case errs[i] != nil:
			entry.Error, entry.Fix = errs[i].Error(), remote.SuggestFix(errs[i])
			status = moreSevere(status, hostStatus(errs[i], cli.ExitPartial))
		case len(r.Left) > 0:
			status = moreSevere(status, cli.ExitPartial)
		case r.Failed > 0:
			status = moreSevere(status, cli.ExitDiffers)
		}
		if errs[i] == nil {
			entry.Result = &r
		}
		answer = append(answer, entry)
	}
	if format == cli.JSON {
		if err := cli.WriteJSON(a.stdout, answer); err != nil {
			return err
		}
		return cli.Exit(status)
	}
	for i, t := range targets {
		printTestedHost(a, &host{target: t, err: errs[i]}, results[t])
	}
	return cli.Exit(status)
}

// printTestedHost writes what one machine answered.
func printTestedHost(a app, h *host, r result.Result) {
	if h.err != nil {
		printFailure(a, cli.Text, h)
		return
	}
	cli.Printf(a.stdout, "%s  Windows %s %s  %s\n", h.target, r.System.OSBuild, r.System.Edition, r.Summary())
	for _, o := range r.Clauses {
		for _, line := range o.Lines() {
			cli.Printf(a.stdout, "%s\n", line)
		}
	}
	for _, left := range r.Left {
		cli.Printf(a.stdout, "left on the host: %s\n", left)
	}
}
