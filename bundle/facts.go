package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// FactsSchema is the version of the format of Facts.
const FactsSchema = 1

// Facts is what a host reports about itself: the output of `wmco-node facts`.
type Facts struct {
	Schema int `json:"schema"`
	// HostName is the computer's DNS host name (GetComputerNameEx, ComputerNamePhysicalDnsHostname).
	HostName string `json:"hostName"`
	// DNSSuffix is the primary DNS suffix (ComputerNamePhysicalDnsDomain), often empty.
	DNSSuffix string `json:"dnsSuffix,omitempty"`
	// Addresses are the IP addresses of the host's adapters.
	Addresses []string `json:"addresses"`
	// DefaultRoute is the IPv4 default route with the lowest metric.
	DefaultRoute DefaultRoute `json:"defaultRoute,omitzero"`
	// OSBuild is major.minor.build, such as "10.0.20348" (RtlGetVersion).
	OSBuild string `json:"osBuild"`
	// BootTime is RFC 3339; another value means a reboot.
	BootTime string `json:"bootTime,omitempty"`
	// DefenderRunning reports whether the service of Microsoft Defender runs.
	DefenderRunning bool `json:"defenderRunning,omitempty"`
	// Features are the optional features that are enabled.
	Features []string `json:"features,omitempty"`
	// PendingBoots are why Windows itself waits for a boot, sorted.
	PendingBoots []BootReason `json:"pendingBoots,omitempty"`
	// MetadataName is the name of the host in the cloud's instance metadata: AWS local-hostname, GCP instance/hostname.
	MetadataName string `json:"metadataName,omitempty"`
	// ProviderID is the identity of the host in its cloud, in the form of Node.spec.providerID; on AWS alone.
	ProviderID string `json:"providerID,omitempty"`
	// Networks and Endpoints are the state of the Host Networking Service.
	Networks  []HNSNetwork  `json:"networks,omitempty"`
	Endpoints []HNSEndpoint `json:"endpoints,omitempty"`
	// Unknown are the parts that Windows did not tell, by name. What they would say is empty then, or what was known
	// before.
	Unknown []UnknownFact `json:"unknown,omitempty"`
	// Kubelet is for those who reach the host, and not reported on its Node.
	Kubelet Kubelet `json:"kubelet,omitzero"`
}

// DefaultRoute is where traffic of the host leaves it.
type DefaultRoute struct {
	// Address is the IPv4 address of the interface that the route uses.
	Address string `json:"address,omitempty"`
	// Gateway is the next hop.
	Gateway string `json:"gateway,omitempty"`
}

// HNSNetwork is one network of the Host Networking Service.
type HNSNetwork struct {
	Name string `json:"name"`
	// AddressPrefix is the network's subnet, CIDR.
	AddressPrefix string `json:"addressPrefix,omitempty"`
	// ManagementIP is the host's address on the network.
	ManagementIP string `json:"managementIP,omitempty"`
}

// HNSEndpoint is one endpoint of the Host Networking Service.
type HNSEndpoint struct {
	Name    string `json:"name"`
	Network string `json:"network,omitempty"`
	IP      string `json:"ip,omitempty"`
}

// InReportForm returns the facts in the form in which they are reported, which changes only if the rendered bundle
// does: sorted, without the kubelet, and with those endpoints alone that are named. Those of pods come
// and go.
func (f Facts) InReportForm(endpoints map[string]bool) Facts {
	f.Kubelet = Kubelet{}
	f.PendingBoots = sortedCopy(f.PendingBoots, func(a, b BootReason) int { return strings.Compare(string(a), string(b)) })
	f.Addresses, f.Features = sortedCopy(f.Addresses, strings.Compare), sortedCopy(f.Features, strings.Compare)
	f.Networks = sortedCopy(f.Networks, func(a, b HNSNetwork) int { return strings.Compare(a.Name, b.Name) })
	f.Endpoints = sortedCopy(f.Endpoints, func(a, b HNSEndpoint) int { return strings.Compare(a.Name, b.Name) })
	f = f.AddUnknown()
	f.Endpoints = slices.DeleteFunc(f.Endpoints, func(e HNSEndpoint) bool { return !endpoints[e.Name] })
	return f
}

func sortedCopy[E any](list []E, compare func(a, b E) int) []E {
	list = slices.Clone(list)
	slices.SortStableFunc(list, compare)
	return list
}

// FirstName returns the name of a Node that a cloud means: the first of several, without its final dot, in lower case,
// as kubelets on Linux take it. A set of DHCP options on AWS may have several domains, or one with a final dot
// (github.com/openshift/machine-config-operator, aws-kubelet-nodename).
func FirstName(text string) string {
	names := strings.Fields(text)
	if len(names) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(names[0], "."))
}

// IsZero reports whether nothing is known.
func (f Facts) IsZero() bool { return f.Schema == 0 }

// Network returns the HNS network of that name, zero if there is none.
func (f Facts) Network(name string) HNSNetwork {
	for _, n := range f.Networks {
		if n.Name == name {
			return n
		}
	}
	return HNSNetwork{}
}

// Endpoint returns the HNS endpoint of that name, zero if there is none.
func (f Facts) Endpoint(name string) HNSEndpoint {
	for _, e := range f.Endpoints {
		if e.Name == name {
			return e
		}
	}
	return HNSEndpoint{}
}

// The most addresses, networks and endpoints that facts have. A host with an address for each web site has some
// hundreds, and each Pod has an endpoint.
const (
	maxFactAddresses = 512
	maxFactNetworks  = 64
	maxFactEndpoints = 4096
)

// ExceedsLimit names the facts that exceed a limit; empty if none does. Each fact is
// compared with those of all hosts.
func (f Facts) ExceedsLimit() string {
	for _, part := range []struct {
		what        string
		count, most int
	}{
		{"addresses", len(f.Addresses), maxFactAddresses},
		{"networks", len(f.Networks), maxFactNetworks},
		{"endpoints", len(f.Endpoints), maxFactEndpoints},
	} {
		if part.count > part.most {
			return fmt.Sprintf("there are %d %s, at most %d are allowed", part.count, part.what, part.most)
		}
	}
	return ""
}

// HasAddress reports whether the host has the address.
func (f Facts) HasAddress(address string) bool {
	return f.HasAll([]string{address})
}

// HasAll reports whether the host has all of the addresses.
func (f Facts) HasAll(addresses []string) bool {
	have := parsedAddresses(f.Addresses)
	return !slices.ContainsFunc(addresses, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err != nil || !have[a]
	})
}

// HasAny reports whether the host has one of the addresses.
func (f Facts) HasAny(addresses []string) bool {
	have := parsedAddresses(addresses)
	return slices.ContainsFunc(f.Addresses, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && have[a]
	})
}

func parsedAddresses(list []string) map[netip.Addr]bool {
	all := make(map[netip.Addr]bool, len(list))
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			all[a] = true
		}
	}
	return all
}

// Build returns the third number of OSBuild, such as 17763 for Windows Server 2019; 0 if it is unknown.
func (f Facts) Build() int {
	parts := strings.Split(f.OSBuild, ".")
	if len(parts) < 3 {
		return 0
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// DecodeFacts reads one or more facts, JSON values one after another, strictly. A newer schema is a *SchemaError.
func DecodeFacts(r io.Reader) ([]Facts, error) {
	dec := json.NewDecoder(r)
	var all []Facts
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading facts %d: %w", len(all)+1, err)
		}
		f, err := decodeFacts(raw)
		if err != nil {
			return nil, fmt.Errorf("reading facts %d: %w", len(all)+1, err)
		}
		all = append(all, f)
	}
}

func decodeFacts(raw []byte) (Facts, error) {
	var f Facts
	if err := decodeStrict(raw, "facts", &f); err != nil {
		return Facts{}, err
	}
	if why := f.ExceedsLimit(); why != "" {
		return Facts{}, errors.New(why)
	}
	for i, a := range f.Addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			return Facts{}, fmt.Errorf("addresses[%d]: %w", i, err)
		}
	}
	for field, value := range map[string]string{"address": f.DefaultRoute.Address, "gateway": f.DefaultRoute.Gateway} {
		if value == "" {
			continue
		}
		if a, err := netip.ParseAddr(value); err != nil || !a.Is4() {
			return Facts{}, fmt.Errorf("defaultRoute.%s: %q is not an IPv4 address", field, value)
		}
	}
	return f, nil
}
