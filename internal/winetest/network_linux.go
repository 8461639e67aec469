package winetest

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Network is the network of a machine.
type Network string

const (
	// NetworkOfHost is that of this computer.
	NetworkOfHost Network = "host"
	// NetworkAlone is a separate one with only 127.0.0.0/8, so that programs on several machines can listen on the same port.
	NetworkAlone Network = "alone"
)

// option returns the option of unshare, if any.
func (n Network) option() string {
	if n == NetworkAlone {
		return "--net"
	}
	return ""
}

// connect enables the loopback of a separate network.
func (m *machine) connect() error {
	if m.network != NetworkAlone {
		return nil
	}
	done := make(chan error)
	go func() {
		// The thread stays in the network of the machine. It ends with this function.
		runtime.LockOSThread()
		done <- loopbackUp("/proc/" + m.id + "/ns/net")
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("enabling the loopback of a machine: %w", err)
	}
	return nil
}

func loopbackUp(namespace string) error {
	file, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	return errors.Join(err, unix.Close(socket))
}
