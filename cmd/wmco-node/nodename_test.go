package main

import (
	"bytes"
	"testing"
	"time"

	"wmco/applier/hosttest/bundletest"
	"wmco/internal/cli"
)

// TestAHostIsTheNodeOfItsKubelet: the certificate that the kubelet has says which, until a bundle does.
func TestAHostIsTheNodeOfItsKubelet(t *testing.T) {
	certificate, _ := certified(t, time.Now().Add(time.Hour)) // of node a
	host := newSimulated(t, program(t))
	put(t, host.root, "/var/lib/kubelet/pki/kubelet-client-current.pem", certificate)
	for _, tt := range []struct {
		name   string
		flags  []string
		status int
	}{
		{"b", nil, cli.ExitUsage}, {"b", []string{"--change-node"}, cli.ExitDiffers}, {"a", nil, cli.ExitDiffers}, {"", nil, cli.ExitDiffers},
	} {
		n := bundletest.New().Changed(func(n *bundletest.Node) { n.NodeName = tt.name })
		r := host.run(t, n.Archive(t, nil), append([]string{"observe"}, tt.flags...)...)
		if r.status != tt.status || tt.status == cli.ExitUsage && !bytes.Contains([]byte(r.stderr), []byte("the bundle is for node b, and this host is node a")) {
			t.Errorf("the bundle of %q with %q: %d, %s", tt.name, tt.flags, r.status, r.stderr)
		}
	}
}
