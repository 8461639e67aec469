package gather

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Reserved are the names and addresses of the cluster itself, which no host has as its own.
type Reserved struct {
	// Names are DNS names and IP addresses: those of the API server, and of the load balancers that clusters on
	// premises have for it and for routes.
	Names []string
	// Domains are those of which every name is the cluster's: that of routes.
	Domains []string
	// Networks are those of services and Pods, CIDRs.
	Networks []string
}

// Labels of the installer's names of a cluster's API servers and of its routes
// (docs.openshift.com, "User-provisioned DNS requirements": api, api-int and *.apps below <cluster>.<base domain>).
const (
	labelAPI         = "api"
	labelAPIInternal = "api-int"
	labelRoutes      = "apps"
)

// readReserved returns what the objects that were read say of it. A domain of routes that is not the installer's
// (Ingress/cluster, spec.domain) is not read.
func (g *gatherer) readReserved() Reserved {
	var r Reserved
	for _, text := range []string{g.infra.Status.APIServerURL, g.infra.Status.APIServerInternalURL} {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		r.Names = append(r.Names, u.Hostname())
		if label, domain, ok := strings.Cut(u.Hostname(), "."); ok && (label == labelAPI || label == labelAPIInternal) {
			r.Names = append(r.Names, labelAPI+"."+domain, labelAPIInternal+"."+domain)
			r.Domains = append(r.Domains, labelRoutes+"."+domain)
		}
	}
	r.Names = sortedOnce(append(r.Names, platformAddresses(g.infra.Status.PlatformStatus)...))
	r.Domains = sortedOnce(r.Domains)
	for _, cidr := range sortedOnce(slices.Concat(g.serviceNetworks(), g.podNetworks(), g.cluster.Network.HybridNetworks)) {
		if _, err := netip.ParsePrefix(cidr); err == nil {
			r.Networks = append(r.Networks, cidr)
		}
	}
	return r
}

// platformAddresses returns all IP addresses in the status of a platform. Each platform has its own fields for them,
// and all of them are the cluster's: VIPs of the API server and of routes, load balancers and DNS servers that the
// cluster runs.
func platformAddresses(p *configv1.PlatformStatus) []string {
	text, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	var status any
	if json.Unmarshal(text, &status) != nil {
		return nil
	}
	return addressesIn(status)
}

func addressesIn(value any) []string {
	var list []string
	switch v := value.(type) {
	case string:
		if _, err := netip.ParseAddr(v); err == nil {
			list = append(list, v)
		}
	case []any:
		for _, e := range v {
			list = append(list, addressesIn(e)...)
		}
	case map[string]any:
		for _, e := range v {
			list = append(list, addressesIn(e)...)
		}
	}
	return list
}

func sortedOnce(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
