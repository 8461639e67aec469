package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/preflight"
	"wmco/render"
)

func preflightCommand(a app) *cobra.Command {
	var f remoteFlags
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "preflight --from PATH|-|cluster[:CONTEXT] --host [USER@]ADDR[:PORT] ...",
		Short: "Run preflight checks on Windows hosts over SSH",
		Long: `Check whether hosts can become nodes of the cluster, and print each finding with its fix: version and updates of Windows, name,
DNS, ports, features and pending reboots, other container runtimes, disk, clock, policies that restrict programs, access to folders,
API server, proxy, the identity in the cloud, and the registries of the pause image. Their credentials are sent to the hosts over SSH,
as when they join. Only the node agent's program is copied to the hosts; nothing else is changed.` +
			cli.ExitHelp(
				"0  no finding of severity error", "1  a host has a finding of severity error",
				"2  invalid usage, or inputs that cannot be read",
				"3  the cluster, a host or the registry of --payload cannot be reached, or refuses the login",
				"4  a host gives no answer that can be read", "130  interrupted",
			) +
			"\nOver several hosts the most severe status wins: 2, 4, 3, 1, 0.",
		Example: `  wmco preflight --from cluster --payload bin/payload --host Administrator@10.0.0.5 --host Administrator@10.0.0.6`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.preflight(cmd.Context(), a, format) },
	}
	f.inputFlags.addFrom(cmd)
	f.clusterFlags.addFlags(cmd)
	cmd.Flags().StringVar(
		&f.payload, "payload", "",
		"folder with the Windows executables, or oci:IMAGE for those of an operator image; the node agent is copied to the hosts",
	)
	f.hostFlags.addFlags(cmd)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsObjects(), needsHosts(), needsProgram()}})
	return cmd
}

// preflightJSON is one machine in the answer of `wmco preflight -o json`.
type preflightJSON struct {
	Host string `json:"host"`
	// Answer is absent where there is an Error.
	Answer   *preflight.Answer `json:"answer,omitempty"`
	Findings bundle.Findings   `json:"findings"`
	Error    string            `json:"error,omitempty"`
	Fix      string            `json:"fix,omitempty"`
}

func (f *remoteFlags) preflight(ctx context.Context, a app, format cli.Format) error {
	targets, client, err := f.newClient(ctx, a, f.payload)
	if err != nil {
		return err
	}
	f.payload = ""
	inputs, err := f.readHosts(ctx, a, desired.UserKey())
	if err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	all := make(map[remote.Target]preflightJSON, len(targets))
	var mu sync.Mutex
	errs := client.ForEachHost(ctx, targets, f.parallel, func(ctx context.Context, m *remote.Agent) error {
		q := desired.Question(inputs.Cluster, nodeAt(inputs, m.Target().Host()))
		answer, err := m.Preflight(ctx, q)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all[m.Target()] = preflightJSON{
			Host: m.Target().String(), Answer: &answer, Findings: findingsAnswer(preflight.Findings(q, answer)),
		}
		return nil
	})
	if err := client.Close(); err != nil {
		return unchangedError(ctx, err)
	}
	return unchangedError(ctx, printPreflight(a, format, preflightAnswers{targets, errs, all}))
}

// nodeAt returns the host of the inputs at an address, or one that the inputs do not have yet.
func nodeAt(inputs *desired.Hosts, address string) render.Node {
	i := slices.IndexFunc(inputs.All, func(n render.Node) bool {
		return n.Address == address || slices.Contains(n.Addresses, address)
	})
	if i >= 0 {
		return inputs.All[i]
	}
	if net.ParseIP(address) == nil {
		return render.Node{}
	}
	return render.Node{Address: address}
}

// preflightAnswers are the machines that were asked, in their order, each with its answer or an error.
type preflightAnswers struct {
	targets []remote.Target
	errs    []error
	answers map[remote.Target]preflightJSON
}

// preflightStatus is the exit status for a machine that has no findings. One that was reached and gives no answer that
// can be read is none that is unreachable.
func preflightStatus(err error) int {
	var unreadable *remote.AnswerError
	if errors.As(err, &unreadable) {
		return cli.ExitPartial
	}
	return hostStatus(err, cli.ExitPartial)
}

func printPreflight(a app, format cli.Format, asked preflightAnswers) error {
	list, status := []preflightJSON{}, cli.ExitDone
	for i, t := range asked.targets {
		entry := asked.answers[t]
		if err := asked.errs[i]; err != nil {
			entry = preflightJSON{Host: t.String(), Findings: bundle.Findings{}, Error: err.Error(), Fix: remote.SuggestFix(err)}
			status = moreSevere(status, preflightStatus(err))
		} else if entry.Findings.Refused() {
			status = moreSevere(status, cli.ExitDiffers)
		}
		list = append(list, entry)
	}
	if format == cli.JSON {
		if err := cli.WriteJSON(a.stdout, list); err != nil {
			return err
		}
		return cli.Exit(status)
	}
	for i, entry := range list {
		if asked.errs[i] != nil {
			printFailure(a, cli.Text, &host{target: asked.targets[i], err: asked.errs[i]})
			continue
		}
		cli.Printf(a.stdout, "%s  Windows %s  %s\n", entry.Host, entry.Answer.Facts.OSBuild, countText(entry.Findings))
		printFindings(a.stdout, palette{a.color}, entry.Findings)
	}
	return cli.Exit(status)
}
