package main

import (
	"context"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/winhost"
	"wmco/bundle"
)

// platformCommands adds nothing: the host is this one.
func platformCommands(*cobra.Command, *app) {}

func openHost(string) (applier.Host, error) { return winhost.New(), nil }

func asService(_ context.Context, run func(context.Context) error) error {
	return winhost.Service(bundle.AgentService, run)
}
