//go:build !windows

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/bundletest"
)

// TestAHostStopsBeingItsNodeByName: the bundle of a host that joins is accepted with the name of its node, and refused with that of another.
func TestAHostStopsBeingItsNodeByName(t *testing.T) {
	host := newSimulated(t, program(t))
	complete := bundletest.New().Changed(func(n *bundletest.Node) { n.NodeName, n.Services = "a", nil })
	joining := bundletest.New().Changed(func(n *bundletest.Node) {
		n.Stage, n.Services = bundle.StageJoin, nil
		delete(n.Files, `C:\k\kubelet.conf`)
	})
	if r := host.run(t, complete.Archive(t, host.missing(t, complete)), "apply"); r.status != cli.ExitDone {
		t.Fatalf("%d, %s", r.status, r.stderr)
	}
	for _, word := range []string{"observe", "stage", "apply"} {
		for _, flags := range [][]string{{word}, {word, "--reset", "b"}} {
			if r := host.run(t, joining.Archive(t, nil), flags...); r.status != cli.ExitUsage || !strings.Contains(r.stderr, "apply with --reset a") {
				t.Errorf("%q: %d, %s", flags, r.status, r.stderr)
			}
		}
	}
	for word, status := range map[string]int{"observe": cli.ExitDiffers, "stage": cli.ExitDone} {
		if r := host.run(t, joining.Archive(t, nil), word, "--reset", "a"); r.status != status {
			t.Errorf("%s: %d, %s", word, r.status, r.stderr)
		}
	}
	if r := host.run(t, joining.Archive(t, nil), "apply", "--reset", "a"); r.status != cli.ExitDone {
		t.Errorf("%d, %s", r.status, r.stderr)
	}
}

// TestAHostIsTheNodeOfItsKubelet: the kubelet's certificate names the node, until a bundle does.
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
