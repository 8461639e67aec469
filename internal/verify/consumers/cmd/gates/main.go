// Command gates writes the Go file with the feature gates and command line flags of the kubelet for package render, as
// registered by the kubelet's own packages of the Kubernetes release in go.mod:
//
//	kubelet's registrations --run--> gates, flags of a Linux build --source of the other platform's files--> flags on Windows
//
// An unknown gate, a locked gate set to the other value, or an unknown flag stops the kubelet at start.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	// Everything that the kubelet links registers its gates and global flags.
	_ "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	out := flag.String("o", "", "the Go file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	if out == "" {
		return fmt.Errorf("-o FILE is missing")
	}
	flags, err := windowsFlags(context.Background())
	if err != nil {
		return err
	}
	source, err := format(tables{Version: kubernetesVersion(), Gates: gates(), Flags: flags})
	if err != nil {
		return err
	}
	return os.WriteFile(out, source, 0o644)
}
