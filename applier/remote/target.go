package remote

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// DefaultUser is the account on a host if none is named.
const DefaultUser = "Administrator"

// defaultPort is the port of SSH servers.
const defaultPort = "22"

// Target is the address of a host, and the account there.
type Target struct {
	User string
	// Address is host:port; the host is a name or an IP address.
	Address string
	// ID identifies the host where its address does not: an address may be another host's tomorrow. Its key is pinned
	// by it. Empty is for a caller that knows hosts by their addresses.
	ID string
}

// ParseTarget parses [USER@]ADDR[:PORT]. The account defaults to DefaultUser, the port to 22. An IPv6
// address with a port stands in brackets.
func ParseTarget(text string) (Target, error) {
	t := Target{User: DefaultUser}
	address := text
	// A user may be DOMAIN\name or name@domain: the last @ counts.
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		t.User, address = text[:i], text[i+1:]
	}
	host, port, err := splitAddress(address)
	if err != nil {
		return Target{}, fmt.Errorf("parsing %q: %w", text, err)
	}
	if t.User == "" || strings.ContainsAny(t.User, " \t\r\n") {
		return Target{}, fmt.Errorf("parsing %q: %q is not an account", text, t.User)
	}
	t.Address = net.JoinHostPort(host, port)
	return t, nil
}

func splitAddress(address string) (host, port string, err error) {
	host, port = address, defaultPort
	switch {
	case strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]"):
		host = address[1 : len(address)-1]
	case strings.Count(address, ":") == 1 || strings.HasPrefix(address, "["):
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "", "", err
		}
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n/@[]") {
		return "", "", fmt.Errorf("%q is not an address", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("%q is not a port", port)
	}
	return host, port, nil
}

// Host returns the name or IP address without the port.
func (t Target) Host() string {
	host, _, err := net.SplitHostPort(t.Address)
	if err != nil {
		return t.Address
	}
	return host
}

func (t Target) portNumber() string {
	_, port, err := net.SplitHostPort(t.Address)
	if err != nil {
		return defaultPort
	}
	return port
}

// String returns what ParseTarget parses, with the port unless it is 22.
func (t Target) String() string {
	host, port, err := net.SplitHostPort(t.Address)
	if err != nil || port != defaultPort {
		return t.User + "@" + t.Address
	}
	return t.User + "@" + host
}
