// Command cluster runs a control plane with its controllers and prints the path of the administrator's kubeconfig when
// it is ready:
//
//	cluster FOLDER     FOLDER is where data, logs and the kubeconfig are; it must not exist, and is removed at the end
//
// It runs until it is interrupted.
//
// Exit status: 0 interrupted; 1 it does not start; 3 a program was not built.
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

	"wmco/internal/test/testenv/controlplane"
)

// statusMissing says that a program was not built.
const statusMissing = 3

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "cluster:", err)
	if _, ok := errors.AsType[*controlplane.MissingError](err); ok {
		os.Exit(statusMissing)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("name a folder")
	}
	c, err := controlplane.Start(controlplane.Options{Controllers: true, Folder: args[0]})
	if err != nil {
		return err
	}
	fmt.Println(c.Kubeconfig)
	<-ctx.Done()
	return c.Stop()
}
