//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/windows/svc"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/winsteps/standin"
)

// exchangeAgents publishes a bundle with another node agent, and then one with a program that ends at once in its
// place.
func exchangeAgents(ctx context.Context, m machine) (err error) {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	api, stop, err := m.serveAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := writeCertificate(); err != nil {
		return err
	}
	if err := m.publishAndAwait(ctx, api, bundleFirst); err != nil {
		return err
	}
	first, err := agentCommand()
	if err != nil {
		return err
	}
	d, err := m.offerAgent(ctx, api, bundleNext, first)
	if err != nil {
		return err
	}
	if err := m.awaitReport(ctx, api, published.StateApplied, func(r published.Report) bool { return r.Applied == d.Bundle && r.Program == "next" }); err != nil {
		return err
	}
	m.say("the agent has exchanged itself")
	next, err := agentCommand()
	if err != nil {
		return err
	}
	d, err = m.offerAgent(ctx, api, bundleCrash, next)
	if err != nil {
		return err
	}
	if err := m.awaitReport(ctx, api, published.StateRolledBack, func(r published.Report) bool { return r.Desired == d.Bundle && r.Program == "next" }); err != nil {
		return err
	}
	if now, err := agentCommand(); err != nil || now != next {
		return fmt.Errorf("the service has %q, not %q as before: %w", now, next, err)
	}
	m.say("an agent that crashes was put back")
	return m.awaitState(ctx, bundle.AgentService, svc.Running)
}

// offerAgent copies the executables of a bundle to the machine, as the operator does over SSH, publishes the bundle,
// and waits until the service has its program.
func (m machine) offerAgent(ctx context.Context, api *standin.APIServer, name, before string) (published.Desired, error) {
	if _, err := m.runAgent(ctx, "stage", name, 0); err != nil {
		return published.Desired{}, err
	}
	d, err := api.Publish(publishedOf(name))
	if err != nil {
		return d, err
	}
	if err := waitUntil(ctx, "the agent hands over to the other program", 5*time.Minute, func() (bool, error) {
		now, err := agentCommand()
		return now != before && strings.Contains(now, "wmco-node"), err
	}); err != nil {
		r, _ := api.Report()
		return d, fmt.Errorf("%w; it reports %+v", err, r)
	}
	if !m.wine {
		return d, nil
	}
	m.cannot("recovery actions, so the other program is started by hand")
	if err := m.awaitState(ctx, bundle.AgentService, svc.Stopped); err != nil {
		return d, err
	}
	// A program that ends at once fails here too.
	if err := startService(bundle.AgentService); err != nil {
		m.say("%s: %v", bundle.AgentService, err)
	}
	return d, nil
}
