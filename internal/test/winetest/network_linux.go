package winetest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"wmco/internal/test/network"
)

// Network is the network of a machine.
type Network string

const (
	// NetworkOfHost is that of this computer.
	NetworkOfHost Network = "host"
	// NetworkAlone is a separate one with only 127.0.0.0/8, so that programs on several machines can listen on the same
	// port.
	NetworkAlone Network = "alone"
)

// option returns the option of unshare, if any.
func (n Network) option() string {
	if n == NetworkAlone {
		return "--net"
	}
	return ""
}

// Listen listens on a TCP address in the network of the machine, such as 127.0.0.1:6443, until the end of the test. Of
// a machine that is alone, such listeners are the only way out.
func (p *Prefix) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := p.machine.inNetwork(func() (err error) {
		listener, err = net.Listen("tcp", address) //nolint:noctx // loopback only
		return err
	})
	if err != nil {
		t.Fatalf("listening in the network of a machine: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// AddAdapter gives a machine that is alone a network adapter with this address, until the end of the test. It leads
// nowhere.
func (p *Prefix) AddAdapter(t testing.TB, address netip.Addr) {
	t.Helper()
	if p.machine.network != NetworkAlone {
		t.Fatal("only a machine that is alone gets an adapter")
	}
	var tap *os.File
	err := p.machine.inNetwork(func() (err error) {
		tap, err = newAdapter("eth0", address)
		return err
	})
	if err != nil {
		t.Fatalf("adding an adapter to a machine: %v", err)
	}
	t.Cleanup(func() { _ = tap.Close() })
}

// newAdapter returns an Ethernet adapter that exists until it is closed (docs.kernel.org/networking/tuntap.html).
func newAdapter(name string, address netip.Addr) (*os.File, error) {
	tap, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	err = network.RequestAdapter(name, func(_ int, r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		return unix.IoctlIfreq(int(tap.Fd()), unix.TUNSETIFF, r)
	})
	if err == nil {
		err = network.RequestAdapter(name, func(socket int, r *unix.Ifreq) error {
			ip := address.As4()
			return errors.Join(r.SetInet4Addr(ip[:]), unix.IoctlIfreq(socket, unix.SIOCSIFADDR, r))
		})
	}
	if err == nil {
		err = network.EnableAdapter(name)
	}
	if err != nil {
		return nil, errors.Join(err, tap.Close())
	}
	return tap, nil
}

// connectNetwork enables the loopback of a separate network.
func (m *machine) connectNetwork() error {
	if m.network != NetworkAlone {
		return nil
	}
	if err := m.inNetwork(func() error { return network.EnableAdapter("lo") }); err != nil {
		return fmt.Errorf("enabling the loopback of a machine: %w", err)
	}
	return nil
}

// inNetwork calls do in the network of the machine. What do opens stays there.
func (m *machine) inNetwork(do func() error) error {
	done := make(chan error)
	go func() {
		// The thread stays in the network of the machine. It ends with this function.
		runtime.LockOSThread()
		err := enterNetwork("/proc/" + m.id + "/ns/net")
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

func enterNetwork(namespace string) error {
	file, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}
