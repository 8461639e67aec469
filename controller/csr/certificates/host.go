package certificates

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
)

// Host is a Windows host that the operator manages, and what it knows of it.
type Host struct {
	// Address is the entry of windows-instances, an IPv4 address or a DNS name; empty for the host of a Machine.
	Address string
	// Machine is the name of the Machine; empty for an instance.
	Machine string
	// Name is the name under which the host's kubelet registers, computed from Facts. Without facts it may be a guess,
	// such as a Node with the address: nothing is approved by it, and it only tells which host to ask. For a Machine it
	// is the name of its Node. Empty is not known.
	Name string
	// Facts are the host's answer over SSH, with its pinned host key: never those that its Node has. Zero is not asked
	// yet.
	Facts bundle.Facts
	// PendingKey is the public key (PKIX, DER) whose request the kubelet waits for, read over SSH. Empty is not asked
	// yet.
	PendingKey []byte
	// Lookups are the answers of the operator's own resolver for Address: the addresses of a name, or the names of an
	// address.
	Lookups []string
	// Reached are addresses besides Address at which the host was reached under its pinned key. For one that is not
	// reached, because its Node waits for adoption, they are those that the resolver gives Address.
	Reached []string
}

// ID is the entry, or the name of the Machine.
func (h Host) ID() string {
	if h.Machine != "" {
		return "Machine " + h.Machine
	}
	return h.Address
}

func (h Host) isInstance() bool { return h.Machine == "" }

// hasName reports whether a DNS name is one of the host's: the node's, the entry, or one that the host or the resolver
// has given.
func (h Host) hasName(name string) bool {
	known := []string{h.Name, h.Address, h.Facts.HostName}
	if h.Facts.DNSSuffix != "" {
		known = append(known, h.Facts.HostName+"."+h.Facts.DNSSuffix)
	}
	return containsName(append(known, h.Lookups...), name)
}

// claimsAddress reports whether the host or the resolver claims an address as one of the host's own. It proves
// nothing.
func (h Host) claimsAddress(a netip.Addr) bool {
	return h.isReachedAt(a) || containsAddress(h.Facts.Addresses, a) || containsAddress(h.Lookups, a)
}

// isReachedAt reports whether the operator has reached the host at an address.
func (h Host) isReachedAt(a netip.Addr) bool { return h.isEntry(a) || containsAddress(h.Reached, a) }

// isEntry reports whether an address is the entry of the host.
func (h Host) isEntry(a netip.Addr) bool { return containsAddress([]string{h.Address}, a) }

// containsName compares names as DNS does. Addresses in the list are no names.
func containsName(list []string, name string) bool {
	return name != "" && slices.ContainsFunc(list, func(known string) bool {
		_, err := netip.ParseAddr(known)
		return err != nil && strings.EqualFold(strings.TrimSuffix(known, "."), name)
	})
}

func containsAddress(list []string, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(known string) bool {
		k, err := netip.ParseAddr(known)
		return err == nil && k.Unmap() == a
	})
}

// isForeign reports whether no host may have the address as its own: every host reaches itself, or several hosts, by
// it.
func isForeign(a netip.Addr) bool {
	return a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.Zone() != ""
}

// isClusterName reports whether clients in a cluster reach the API server, a service or themselves by a name. A host
// may claim anything to be its name.
func isClusterName(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"kubernetes", "kubernetes.default", "openshift", "openshift.default", "localhost"}, name) ||
		slices.ContainsFunc([]string{".svc", ".cluster.local", ".localhost"}, func(suffix string) bool {
			return strings.HasSuffix(name, suffix)
		})
}

// isDNSName reports whether a name is that of one host: a wildcard would be that of others too, and a dot at the end
// would make it differ from names that it must not be.
func isDNSName(name string) bool {
	return len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}

// samePublicKey compares two public keys, however they are encoded.
func samePublicKey(key crypto.PublicKey, der []byte) bool {
	pending, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return false
	}
	a, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return false
	}
	b, err := x509.MarshalPKIXPublicKey(pending)
	return err == nil && bytes.Equal(a, b)
}
