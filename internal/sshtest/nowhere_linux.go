package sshtest

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"wmco/internal/sshtest/sshd"
)

// Refusing returns an address that nothing listens on.
func Refusing(t testing.TB) string {
	t.Helper()
	address, err := sshd.FreeAddress(net.JoinHostPort(sshd.Loopback(), "0"))
	must(t, err)
	return address
}

// BlackHole returns an address that never answers: its listener has a full queue.
func BlackHole(t testing.TB) string {
	t.Helper()
	host := sshd.Loopback()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	var address syscall.SockaddrInet4
	copy(address.Addr[:], net.ParseIP(host).To4())
	must(t, syscall.Bind(fd, &address))
	must(t, syscall.Listen(fd, 0))
	bound, err := syscall.Getsockname(fd)
	must(t, err)
	to := net.JoinHostPort(host, strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", to, 200*time.Millisecond) //nolint:noctx // loopback only
		if err != nil {
			return to
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue is not full")
	return to
}
