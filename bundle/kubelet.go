package bundle

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Kubelet is what a host reports about its service kubelet. The report is untrusted: it may keep the host from being
// changed, and decides nothing else.
type Kubelet struct {
	// Program is the program of the service, without its arguments. Empty is none.
	Program string `json:"program,omitempty"`
	// Server is the URL of the API server in the kubeconfig of the service, or in that with which it asks for its first
	// certificate. Empty where neither can be read.
	Server string `json:"server,omitempty"`
	// CAs are the digests of the certificates (DER) with which the service verifies that server, sorted.
	CAs []Digest `json:"cas,omitempty"`
}

// MostCAs is how many certificates of a kubeconfig are looked at.
const MostCAs = 64

// CertificateDigests returns the digests of the certificates in PEM text, sorted. What is no certificate is left out.
func CertificateDigests(text []byte) []Digest {
	var list []Digest
	for len(list) < MostCAs {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			list = append(list, Of(block.Bytes))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

const (
	// ownPrograms begins the paths of programs of nodes, those of the existing operator too.
	ownPrograms = `c:\k\`
	// maxKubeletText is how many bytes of a host's text are shown.
	maxKubeletText = 200
)

// BelongsElsewhere returns why a host with this kubelet is not one for a cluster with these API servers and CAs (PEM),
// and what to do. Both are empty if it may be. A kubelet of this cluster names one of its servers; or another one,
// where all its CAs are the cluster's, as after a change of the URL. A cluster that was installed again under its name
// has the URL with other CAs: its hosts are its own.
func (k Kubelet) BelongsElsewhere(servers []string, cas string) (why, fix string) {
	switch {
	case k.Program == "", len(servers) == 0:
		return "", ""
	case k.Server == "" && strings.HasPrefix(FoldPath(k.Program), ownPrograms):
		return "", "" // it has not asked for a certificate yet, or what a removal has left
	case k.Server == "":
		why = fmt.Sprintf("the host has a kubelet, %q, and its cluster cannot be read", BoundedText(k.Program, maxKubeletText))
	case slices.ContainsFunc(servers, func(own string) bool { return endpointOf(own) == endpointOf(k.Server) }), k.hasOnlyCAs(cas):
		return "", ""
	default:
		why = fmt.Sprintf(
			"the kubelet of the host belongs to another cluster, whose API server is %q",
			BoundedText(k.Server, maxKubeletText),
		)
	}
	return why + "; nothing was changed on it", "check the address, or remove the host from that cluster first; " +
		"if the cluster no longer exists, delete the service on the host: net stop kubelet /y & sc.exe delete kubelet"
}

// hasOnlyCAs reports whether all CAs are among those in PEM text.
func (k Kubelet) hasOnlyCAs(text string) bool {
	own := CertificateDigests([]byte(text))
	return len(k.CAs) > 0 && !slices.ContainsFunc(k.CAs, func(d Digest) bool { return !slices.Contains(own, d) })
}

// endpointOf returns host and port of a URL in one form; the text itself if it is none.
func endpointOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return strings.ToLower(u.Hostname()) + " " + cmp.Or(u.Port(), "443")
}
