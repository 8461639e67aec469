package main

import (
	"context"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/winhost"
	"wmco/render/bundle"
)

// rootFlag: there is one machine.
func rootFlag(*cobra.Command, *app) {}

func openHost(string) (applier.Host, error) { return winhost.New(), nil }

func asService(ctx context.Context, run func(context.Context) error) error {
	return winhost.Service(ctx, bundle.AgentService, run)
}
