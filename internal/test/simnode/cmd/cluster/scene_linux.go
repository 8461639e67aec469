package main

import (
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"wmco/bundle"
)

// scene is what `up` makes.
type scene struct {
	folder   string
	load     []string
	machines []machine
	// bare is a cluster without the Secret and the kubeconfig of the operator.
	bare bool
}

// machine is a simulated machine.
type machine struct {
	name    string
	address netip.Addr
	// locked machines do not accept the operator's key.
	locked bool
}

func parseScene(args []string) (scene, error) {
	var s scene
	var locked []string
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringArrayVar(&s.load, "load", nil, "")
	flags.StringArrayVar(&locked, "locked", nil, "")
	flags.BoolVar(&s.bare, "bare", false, "")
	if err := flags.Parse(args); err != nil {
		return scene{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() < 2 {
		return scene{}, errUsage
	}
	var err error
	// The SSH servers and the API server do not run in this folder.
	if s.folder, err = filepath.Abs(flags.Arg(0)); err != nil {
		return scene{}, err
	}
	for _, text := range flags.Args()[1:] {
		name, address, _ := strings.Cut(text, "=")
		at, err := netip.ParseAddr(address)
		if name == "" || err != nil || !at.Is4() {
			return scene{}, fmt.Errorf("%w: %q is not NAME=ADDRESS with an IPv4 address", errUsage, text)
		}
		s.machines = append(s.machines, machine{name, at, slices.Contains(locked, name)})
	}
	for _, name := range locked {
		if !slices.ContainsFunc(s.machines, func(m machine) bool { return m.name == name }) {
			return scene{}, fmt.Errorf("%w: --locked %s is none of the machines", errUsage, name)
		}
	}
	return s, nil
}

// facts are those of a new Windows Server 2022.
func (m machine) facts() bundle.Facts {
	return bundle.Facts{
		Schema: bundle.FactsSchema, HostName: m.name, Addresses: []string{m.address.String()}, OSBuild: "10.0.20348",
		DefenderRunning: true, Features: []string{"Containers"},
		DefaultRoute: bundle.DefaultRoute{Address: m.address.String(), Gateway: netip.PrefixFrom(m.address, 24).Masked().Addr().Next().String()},
	}
}
