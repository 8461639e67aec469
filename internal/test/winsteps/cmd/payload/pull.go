//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows"

	"wmco/internal/test/winsteps/standin"
)

const (
	// mirrored is the registry of which the bundle has a mirror, and mirror is the registry on this machine, which
	// listens on the address.
	mirrored = "images.example.com"
	mirror   = "localhost:5000"
	address  = "127.0.0.1:5000"
	// repository is that of nanoserver in Microsoft's registry.
	repository = "windows/nanoserver"
	microsoft  = "https://mcr.microsoft.com"
	// pipe is containerd's.
	pipe = `\\.\pipe\containerd-containerd`
)

// imageTag is that of the image that runs on this build without Hyper-V
// (learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility).
func imageTag() string {
	switch _, _, build := windows.RtlGetNtVersionNumbers(); {
	case build >= 26100:
		return "ltsc2025"
	case build >= 20348:
		return "ltsc2022"
	}
	return "1809"
}

func imageName() string { return mirrored + "/" + repository + ":" + imageTag() }

// pullImage has containerd pull through its hosts files: from the registry on this machine, which hands on to
// Microsoft's.
func pullImage(ctx context.Context, m machine) (err error) {
	if m.wine {
		m.cannot("containerd, so nothing is pulled")
		return nil
	}
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	registry := &standin.Registry{Upstream: microsoft}
	stop, err := standin.Listen(ctx, address, certificates, registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	err = m.runTool(ctx, "crictl.exe", "", "--runtime-endpoint", "npipe:////./pipe/containerd-containerd", "--timeout", "15m", "pull", imageName())
	if err != nil {
		return err
	}
	asked := registry.Asked()
	if !slices.ContainsFunc(asked, func(path string) bool { return strings.HasPrefix(path, "/v2/"+repository+"/manifests/") }) {
		return fmt.Errorf("the registry on this machine was not asked for %s, only for %q", repository, asked)
	}
	m.say("%s came from the mirror %s", imageName(), mirror)
	return nil
}

// runTool runs a program of containerd's, which must print a text.
func (m machine) runTool(ctx context.Context, program, text string, args ...string) error {
	r, err := runProgram(ctx, "", filepath.Join(root, program), args...)
	if err != nil {
		return err
	}
	m.say("%s: status %d, %s", program, r.status, strings.TrimSpace(tail(r.output)))
	if r.status != 0 || !strings.Contains(r.output, text) {
		return fmt.Errorf("%s %q: status %d, and the output should have %q", program, args, r.status, text)
	}
	return nil
}

// runContainer has containerd and runhcs run a command in a container of the image that pull pulled.
func runContainer(ctx context.Context, m machine) error {
	if m.wine {
		m.cannot("containerd and runhcs, so no container is started")
		return nil
	}
	if err := m.applyAndVerify(ctx, bundleFirst); err != nil {
		return err
	}
	const text = "a container of nanoserver"
	return m.runTool(
		ctx, "ctr.exe", text, "--address", pipe, "--namespace", "k8s.io", "run", "--rm", imageName(), "wmco-steps",
		"cmd", "/c", "echo "+text,
	)
}
