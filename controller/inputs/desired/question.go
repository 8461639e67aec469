package desired

import (
	"strings"

	"wmco/bundle"
	"wmco/preflight"
	"wmco/render"
)

// Question returns what a host is asked before it can become a node of the cluster. It has the credentials of the pull
// secret.
func Question(c render.Cluster, n render.Node) preflight.Question {
	q := preflight.Question{
		Schema: preflight.Schema, Address: n.Address, VSphere: c.Platform == bundle.PlatformVSphere,
		VXLANPort: c.Network.HybridOverlayPort,
		Node:      n.Name != "", RenamesComputer: n.MachineName != "" &&
			(c.Platform == bundle.PlatformVSphere || c.Platform == bundle.PlatformNutanix),
		CA: c.Bootstrap.CA, TrustedCAs: trustedCAs(c),
		Proxy: preflight.Proxy{HTTP: revealed(c.Proxy.HTTP), HTTPS: revealed(c.Proxy.HTTPS), NoProxy: c.Proxy.NoProxy},
	}
	if c.RunsCredentialProvider() {
		q.Identity = preflight.IdentityOf(c.Platform, c.Machine.Azure.UserAssigned)
	}
	if c.APIServerInternalURL != "" {
		q.API = []string{c.APIServerInternalURL}
	}
	for _, p := range c.PausePlaces() {
		q.Places = append(q.Places, preflight.Place{Manifest: p.Manifest, Authorization: revealed(p.Authorization),
			SkipVerify: p.SkipVerify})
	}
	return q
}

// revealed returns a secret for the host, nothing for the stand-in of one.
func revealed(s bundle.Secret) string {
	if s.IsStandIn() {
		return ""
	}
	return s.Reveal()
}

func trustedCAs(c render.Cluster) string {
	all := []string{c.TrustedCAs}
	for _, r := range c.RegistryCAs {
		all = append(all, r.PEM)
	}
	return strings.Join(all, "\n")
}
