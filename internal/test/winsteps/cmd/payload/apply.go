//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows/svc"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/winsteps/standin"
)

// The bundles of the steps, see hack/windows/payload.
const (
	// bundleFirst is what the machine should have.
	bundleFirst = "first"
	// bundleOther has another maxPods and another mirror.
	bundleOther = "other"
	// bundleBad has a configuration with which the kubelet's stand-in ends.
	bundleBad = "bad"
	// bundleNext has another build of the node agent, bundleCrash a program that ends in its place.
	bundleNext  = "next"
	bundleCrash = "crash"
)

// services returns the services that every machine gets. The bundle has kube-proxy only where the overlay network is,
// which the stand-in for hybrid-overlay-node does not make.
func services() []string {
	return []string{"containerd", "kubelet", "windows_exporter", "csi-proxy", "hybrid-overlay-node", bundle.AgentService}
}

// kubeletClient is the kubelet's certificate, which the node agent uses.
const kubeletClient = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// applyFirst makes the machine a node, and lets the agent report to the API server.
func applyFirst(ctx context.Context, m machine) (err error) {
	if err := keepBefore(); err != nil {
		return err
	}
	api, stop, err := m.serveAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	for _, name := range services() {
		if err := m.awaitState(ctx, name, svc.Running); err != nil {
			return err
		}
	}
	if err := writeCertificate(); err != nil {
		return err
	}
	if err := m.publishAndAwait(ctx, api, bundleFirst); err != nil {
		return err
	}
	text, err := m.runAgent(ctx, "apply", bundleFirst, 0)
	if err == nil && !strings.Contains(text, "same: 0 files written, 0 services started") {
		err = fmt.Errorf("the second run changed something:\n%s", tail(text))
	}
	return err
}

// writeCertificate gives the agent the certificate that a kubelet has when it has joined.
func writeCertificate() error {
	text, err := os.ReadFile(filepath.Join(certificates, standin.FileNode))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(kubeletClient), 0o700); err != nil {
		return err
	}
	return os.WriteFile(kubeletClient, text, 0o600)
}

// publishAndAwait publishes a bundle and waits until the agent reports that the machine has it.
func (m machine) publishAndAwait(ctx context.Context, api *standin.APIServer, bundle string) error {
	d, err := api.Publish(publishedOf(bundle))
	if err != nil {
		return err
	}
	return m.awaitReport(ctx, api, published.StateApplied, func(r published.Report) bool { return r.Applied == d.Bundle })
}

// awaitReport waits for a report of the agent. It reads its files again after a minute.
func (m machine) awaitReport(ctx context.Context, api *standin.APIServer, state published.State, also func(published.Report) bool) error {
	err := waitUntil(ctx, fmt.Sprintf("the agent reports %s", state), 5*time.Minute, func() (bool, error) {
		r, ok := api.Report()
		return ok && r.State == state && also(r), nil
	})
	r, _ := api.Report()
	if err != nil {
		return fmt.Errorf("%w; it reports %+v", err, r)
	}
	m.say("the agent reports %s to the API server: %s", r.State, r.Applied.Short())
	return nil
}

// rollBack applies a bundle with which a service does not start.
func rollBack(ctx context.Context, m machine) error {
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	if _, err := m.runAgent(ctx, "apply", bundleBad, 5); err != nil {
		return err
	}
	if _, err := m.runAgent(ctx, "verify", bundleFirst, 0); err != nil {
		return err
	}
	return m.awaitState(ctx, "kubelet", svc.Running)
}
