package remote

import (
	"errors"
	"net"
	"testing"
)

func TestAttemptsToConfirmDifferByMoreThanTheirPorts(t *testing.T) {
	attempt := func(port int, why string) error {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		return &UnreachableError{Phase: PhaseDial, Err: &net.OpError{Op: "read", Net: "tcp", Source: from, Err: errors.New(why)}}
	}
	if a, b := attempt(1, "refused"), attempt(2, "refused"); kindOf(a) != kindOf(b) {
		t.Errorf("%q and %q differ", a, b)
	}
	if a, b := attempt(1, "refused"), attempt(1, "no route"); kindOf(a) == kindOf(b) {
		t.Errorf("%q and %q are the same", a, b)
	}
}
