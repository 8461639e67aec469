// Command machines starts OpenSSH servers, each in front of a simulated Windows host, and keeps them until its stdin
// ends:
//
//	machines FOLDER ADDRESS...     ADDRESS is host:port on 127.0.0.0/8; a free port where it is 0
//
// When all listen it prints a line for each: account@host:port, the file of the private key, the host's folder. They
// accept the same key. The hosts are empty: `wmco-node --root FOLDER machine create` creates them.
//
// Exit status: 0 stdin ended; 1 a server does not start; 3 OpenSSH's server is not installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"wmco/internal/test/sshtest/sshd"
)

// statusNoServer means that sshd is not installed.
const statusNoServer = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil:
		return
	case errors.Is(err, sshd.ErrNoServer):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(statusNoServer)
	}
	fmt.Fprintln(os.Stderr, "machines:", err)
	os.Exit(1)
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("name a folder, and an address for each host")
	}
	folder, addresses := args[0], args[1:]
	programs, err := sshd.Build(ctx)
	defer func() { err = errors.Join(err, programs.Remove()) }()
	if err != nil {
		return err
	}
	servers, err := startMachines(programs, folder, addresses)
	defer func() {
		for _, s := range servers {
			s.Stop()
		}
	}()
	if err != nil {
		return err
	}
	for _, s := range servers {
		fmt.Printf("%s@%s %s %s\n", s.User, s.Address, servers[0].KeyFile, s.Root)
	}
	return waitForStdin(ctx)
}

// startMachines starts all servers. The caller stops them, also after an error.
func startMachines(programs sshd.Programs, folder string, addresses []string) ([]*sshd.Server, error) {
	var all []*sshd.Server
	for i, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return all, err
		}
		if !net.ParseIP(host).IsLoopback() {
			return all, fmt.Errorf("%s is not on 127.0.0.0/8", address)
		}
		own := filepath.Join(folder, "machine-"+strconv.Itoa(i+1))
		if err := os.MkdirAll(own, 0o700); err != nil {
			return all, err
		}
		o := sshd.Options{Address: address}
		if i > 0 {
			o.Key = all[0].Key
		}
		s, err := programs.Start(own, o)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// waitForStdin waits until stdin ends, or for a signal.
func waitForStdin(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}
