package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/internal/cli"
	"wmco/render/machines"
)

// machineSetFlags are those of `wmco machineset`.
type machineSetFlags struct {
	inputFlags
	platform           platformFlag
	infrastructureName string
	options            machines.Options
	format             cli.Format
}

// platformFlag is --platform.
type platformFlag struct {
	value bundle.Platform
	// among are those that the command accepts.
	among []bundle.Platform
}

// String implements pflag.Value.
func (p *platformFlag) String() string { return machines.Flag(p.value) }

// Set implements pflag.Value.
func (p *platformFlag) Set(s string) (err error) {
	p.value, err = machines.ParsePlatform(s, p.among)
	return err
}

// Type is what help calls the value.
func (p *platformFlag) Type() string { return "PLATFORM" }

func (p *platformFlag) names() []string {
	var names []string
	for _, p := range p.among {
		names = append(names, machines.Flag(p))
	}
	return names
}

func addPlatform(cmd *cobra.Command, p *platformFlag, usage string) {
	cmd.Flags().Var(p, "platform", usage+": "+strings.Join(p.names(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("platform", cobra.FixedCompletions(p.names(), cobra.ShellCompDirectiveNoFileComp))
}

// machineSetAnswer is the answer of `wmco machineset -o json`. There is no MachineSet where findings refuse it.
type machineSetAnswer struct {
	MachineSet map[string]any  `json:"machineSet,omitempty"`
	Findings   bundle.Findings `json:"findings"`
}

func machineSetCommand(a app) *cobra.Command {
	f := machineSetFlags{platform: platformFlag{among: machines.Platforms()}}
	cmd := &cobra.Command{
		Use:   "machineset --name NAME [--platform PLATFORM] [--from PATH|-|cluster[:CONTEXT]] [--zone ZONE] [--image IMAGE]",
		Short: "Write the manifest of a MachineSet of Windows Machines",
		Long: `Write the manifest of a MachineSet of Windows Machines to stdout. Nothing is applied, and it has no replicas yet.

It is a copy of a worker MachineSet of the cluster with the name, labels, image and user data that Windows needs. Without a cluster or
a worker MachineSet, give every value by flags; all missing ones are listed.

The image is an AMI (aws), PUBLISHER:OFFER:SKU:VERSION or a resource ID (azure), an image (gcp), a template (vsphere),
an image's name or UUID (nutanix). The default is the image of the model, if that is a Windows MachineSet.` +
			cli.ExitHelp(
				"0  done", "2  invalid usage, or errors in the inputs; no manifest was written",
				"3  the cluster cannot be reached", "130  interrupted",
			),
		Example: `  wmco machineset --from cluster --name winworker --zone eu-central-1a --image ami-0823a3180dad3c9c3 | oc apply -f -
  wmco machineset --from must-gather.local.123 --name winw --model example-7k2vd-worker-westeurope1 \
    --image MicrosoftWindowsServer:WindowsServer:2022-datacenter:latest --set osDisk.diskSizeGB=256`,
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.addFrom(cmd)
	f.addKubeconfig(cmd)
	addPlatform(cmd, &f.platform, "where the Machines run (default that of the cluster)")
	flags := cmd.Flags()
	flags.StringVar(&f.options.Name, "name", "", "name of the MachineSet (at most 9 characters on azure, vsphere and nutanix)")
	flags.StringVar(
		&f.options.Zone, "zone", "",
		"availability zone, or failure domain of vsphere and nutanix (default that of the model)",
	)
	flags.StringVar(&f.options.Image, "image", "", "Windows image")
	flags.StringVar(&f.options.InstanceType, "instance-type", "", "instance type (default that of the model)")
	flags.StringVar(
		&f.options.Model, "model", "",
		"name of the MachineSet to copy (default one of the zone, a Windows MachineSet if there is one)",
	)
	flags.StringVar(&f.infrastructureName, "infrastructure-name", "", "infrastructure name (default that of the cluster)")
	flags.StringArrayVar(
		&f.options.Set, "set", nil,
		"change the providerSpec: PATH=VALUE such as placement.region=eu-central-1; repeatable, applied last",
	)
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	return cmd
}

func (f *machineSetFlags) run(ctx context.Context, a app) error {
	var findings bundle.Findings
	o := f.options
	if len(f.from) > 0 {
		reader, _, err := a.readerOf(f.from, f.kube)
		if err != nil {
			return err
		}
		if o.Cluster, findings, err = gather.WorkerMachineSets(ctx, reader); err != nil {
			return err
		}
	}
	o.Platform = cmp.Or(f.platform.value, o.Cluster.Platform)
	o.Cluster.InfrastructureName = cmp.Or(f.infrastructureName, o.Cluster.InfrastructureName)
	manifest, more := machines.MachineSet(o)
	return f.answer(a, manifest, append(findings, more...).Sorted())
}

func (f *machineSetFlags) answer(a app, manifest machines.Manifest, findings bundle.Findings) error {
	refused := findings.Refused()
	if refused {
		manifest = machines.Manifest{}
	}
	if f.format == cli.JSON {
		if err := cli.WriteJSON(a.stdout, machineSetAnswer{
			MachineSet: manifest.Object, Findings: findingsAnswer(findings),
		}); err != nil {
			return err
		}
	} else {
		printFindings(a.stderr, palette{}, findings)
	}
	if refused {
		return cli.UsageError("no MachineSet is written: %s", countText(findings))
	}
	if f.format == cli.JSON {
		return nil
	}
	return writeManifest(a, manifest)
}

func writeManifest(a app, m machines.Manifest) error {
	text, err := m.YAML()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}
