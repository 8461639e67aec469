package sshd

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// Loopback returns an address that no other server of this process has.
func Loopback() string {
	n := addresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%200, n/250%250, 1+n%250)
}

//nolint:gochecknoglobals // a counter over all servers of the process
var addresses atomic.Uint32

// freeAddress replaces port 0 by a free one. A port that is in use is an error. No process is started until then: before its program
// runs, it has a copy of the listener, which answers in place of the server, and keeps the port from it (syscall.ForkLock).
func freeAddress(address string) (string, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", address) //nolint:noctx // loopback only
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
