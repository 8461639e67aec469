package sshtest

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"wmco/internal/test/sshtest/sshd"
)

// Refusing returns an address without a listener. Its port is held, so that no other program listens there.
func Refusing(t testing.TB) string {
	t.Helper()
	_, address := boundAddress(t)
	return address
}

// boundAddress returns a socket that has an address and does not listen.
func boundAddress(t testing.TB) (socket int, address string) {
	t.Helper()
	host := sshd.Loopback()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	var local syscall.SockaddrInet4
	copy(local.Addr[:], net.ParseIP(host).To4())
	must(t, syscall.Bind(fd, &local))
	got, err := syscall.Getsockname(fd)
	must(t, err)
	return fd, net.JoinHostPort(host, strconv.Itoa(got.(*syscall.SockaddrInet4).Port))
}

// BlackHole returns an address that never answers: its listener has a full queue.
func BlackHole(t testing.TB) string {
	t.Helper()
	fd, to := boundAddress(t)
	must(t, syscall.Listen(fd, 0))
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
