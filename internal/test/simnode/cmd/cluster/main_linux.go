// Command cluster is a cluster with simulated Windows machines, for demonstrations, and a small client of it:
//
//	cluster up FOLDER [--bare] [--load PATH]... [--locked NAME]... NAME=ADDRESS...
//	                       a control plane with the objects of the paths, and machines that listen on port 22 of their addresses
//	cluster plane FOLDER   a control plane alone, with its controllers, until it is interrupted; prints the path of its kubeconfig
//	cluster apply FILE...  server-side apply, as kubectl apply --server-side does
//	cluster nodes          the Nodes, one a line
//	cluster events OBJECT  the events about an object, such as ConfigMap/windows-instances
//	cluster payload FROM VERSION TO NAME=FILE...
//	                       a copy of the payload FROM with other executables of that version, such as a node agent that runs on the simulated machines
//	cluster registry ADDRESS FOLDER
//	                       a registry with the operator's image that has this payload, until it is interrupted; prints its name
//
// `up` prints what it has made, then "ready", and runs until its stdin ends. The folder must not exist; control plane
// and machines are below it. A machine that has a Machine gets its certificates approved, as by the cluster's approver.
// A locked machine does not accept the operator's key. In a bare cluster the operator is not installed: it has no
// Secret with the key and no kubeconfig. The other commands find the cluster as kubectl does.
//
// Exit status: 0 done; 1 an error; 2 usage; 3 a program that is needed is not there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv/controlplane"
)

// Exit statuses beside 0 and 1.
const (
	statusUsage   = 2
	statusMissing = 3
)

// errUsage means that the command line is not one of those above.
var errUsage = errors.New("usage: cluster up FOLDER [--bare] [--load PATH]... [--locked NAME]... NAME=ADDRESS... | plane FOLDER | apply FILE... | nodes | events OBJECT | payload FROM VERSION TO NAME=FILE... | registry ADDRESS FOLDER")

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "cluster:", err)
	os.Exit(statusOf(err))
}

func statusOf(err error) int {
	_, missing := errors.AsType[*controlplane.MissingError](err)
	switch {
	case errors.Is(err, errUsage):
		return statusUsage
	case missing || errors.Is(err, sshd.ErrNoServer):
		return statusMissing
	}
	return 1
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch command, rest := args[0], args[1:]; {
	case command == "up":
		s, err := parseScene(rest)
		if err != nil {
			return err
		}
		return s.up(ctx)
	case command == "plane" && len(rest) == 1:
		return runPlane(ctx, rest[0])
	case command == "apply" && len(rest) > 0:
		return applyFiles(ctx, os.Stdout, rest)
	case command == "nodes" && len(rest) == 0:
		return printNodes(ctx, os.Stdout)
	case command == "events" && len(rest) == 1:
		return printEvents(ctx, os.Stdout, rest[0])
	case command == "payload" && len(rest) > 3:
		return writePayload(rest[0], rest[1], rest[2], rest[3:])
	case command == "registry" && len(rest) == 2:
		return serveRegistry(ctx, rest[0], rest[1])
	}
	return errUsage
}

// runPlane runs a control plane, whose folder is removed at the end.
func runPlane(ctx context.Context, folder string) error {
	c, err := controlplane.Start(controlplane.Options{Controllers: true, Folder: folder})
	if err != nil {
		return err
	}
	fmt.Println(c.Kubeconfig)
	<-ctx.Done()
	return c.Stop()
}
