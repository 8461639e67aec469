package certificates

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"wmco/bundle/published"
)

// Users and groups of Kubernetes and OpenShift.
const (
	nodePrefix = "system:node:"
	nodeGroup  = "system:nodes"
	// bootstrapper is the ServiceAccount whose token hosts join with (Secret node-bootstrapper-token).
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
)

// kind is what a certificate is for.
type kind string

const (
	// kindOther is not judged here.
	kindOther kind = ""
	// kindClient is a kubelet's client certificate.
	kindClient kind = "client certificate"
	// kindServing is a kubelet's serving certificate.
	kindServing kind = "serving certificate"
	// kindCloud is the client certificate of cloud-node-manager.
	kindCloud kind = "client certificate of cloud-node-manager"
)

// request is a CSR, as far as it has the form of one that is judged here.
type request struct {
	kind kind
	// node is the name of the node that the certificate is for.
	node string
	spec certificatesv1.CertificateSigningRequestSpec
	x509 *x509.CertificateRequest
	// extra reports whether the text has something after its PEM block, or headers in it.
	extra bool
}

// NodeName returns the name of the node that a CSR is about, empty for one that is never approved here. It proves
// nothing: it is for finding the host.
func NodeName(csr *certificatesv1.CertificateSigningRequest) string {
	r, err := parseRequest(csr)
	if err != nil || r.kind == kindOther {
		return ""
	}
	return r.node
}

var errNotRequest = errors.New("not a PEM certificate request")

func parseRequest(csr *certificatesv1.CertificateSigningRequest) (request, error) {
	r := request{spec: csr.Spec}
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return r, errNotRequest
	}
	r.extra = len(strings.TrimSpace(string(rest))) > 0 || len(block.Headers) > 0
	var err error
	if r.x509, err = x509.ParseCertificateRequest(block.Bytes); err != nil {
		return r, errNotRequest
	}
	user, prefix := r.x509.Subject.CommonName, nodePrefix
	switch csr.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		r.kind = kindClient
	case certificatesv1.KubeletServingSignerName:
		r.kind = kindServing
	case certificatesv1.KubeAPIServerClientSignerName:
		r.kind, prefix = kindCloud, published.CloudNodeManagerPrefix
	}
	var ok bool
	if r.node, ok = strings.CutPrefix(user, prefix); !ok || r.node == "" {
		r.kind = kindOther
	}
	return r, nil
}

// isDecided reports whether the CSR is approved or denied, or the signer is done with it.
func isDecided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 ||
		slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
		})
}

// isFromNode reports whether the node itself made the request, with its client certificate.
func (r request) isFromNode() bool {
	return r.spec.Username == nodePrefix+r.node && slices.Contains(r.spec.Groups, nodeGroup)
}

// subjectGroup is the one organization of the subject.
func (r request) subjectGroup() string {
	if r.kind == kindCloud {
		return published.CloudNodeManagerGroup
	}
	return nodeGroup
}

// subjectAltName is the one extension that a serving certificate asks for (RFC 5280, section 4.2.1.6).
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17} //nolint:gochecknoglobals // a constant that Go cannot express

// maxNames is for how many names and addresses a serving certificate is. A kubelet asks for those of its Node's status;
// each of them is compared with those of all hosts and Nodes.
const maxNames = 64

// maxKeyBits is the size of the largest RSA key with which clients in Go talk to a server (crypto/tls). What it costs
// to check a signature grows with its square: with one of 262,144 bits, which is 32 KiB, it takes seconds.
const maxKeyBits = 8192

func (r request) isKeyTooLarge() bool {
	key, ok := r.x509.PublicKey.(*rsa.PublicKey)
	return ok && key.N.BitLen() > maxKeyBits
}

// formProblem returns the problem of the form of the request, empty if it has exactly the form that client-go gives
// it (k8s.io/client-go/util/certificate).
func (r request) formProblem() string {
	switch {
	case r.extra:
		return "there is more than the request in its text"
	case r.isKeyTooLarge():
		return "its key has more than " + strconv.Itoa(maxKeyBits) + " bits"
	case r.x509.CheckSignature() != nil:
		return "it is not signed with its own key"
	case !slices.Equal(r.x509.Subject.Organization, []string{r.subjectGroup()}) || len(r.x509.Subject.Names) != 2:
		return "its subject is not the user in the group " + r.subjectGroup() + " and nothing else"
	case !r.hasUsages():
		return "its usages are not those of a " + string(r.kind)
	}
	for _, e := range r.x509.Extensions {
		if r.kind != kindServing || !e.Id.Equal(subjectAltName) {
			return "it asks for the extension " + e.Id.String()
		}
	}
	if r.kind != kindServing {
		return ""
	}
	switch {
	case len(r.x509.EmailAddresses) > 0 || len(r.x509.URIs) > 0:
		return "it asks for an email address or a URI"
	case len(r.x509.DNSNames)+len(r.x509.IPAddresses) == 0:
		return "it asks for no name and no address"
	case len(r.x509.DNSNames)+len(r.x509.IPAddresses) > maxNames:
		return "it asks for more than " + strconv.Itoa(maxNames) + " names and addresses"
	}
	return ""
}

// hasUsages reports whether the usages are those that the signer allows. Key encipherment is for RSA keys, which older
// kubelets have (kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests, Kubernetes signers).
func (r request) hasUsages() bool {
	auth := certificatesv1.UsageClientAuth
	if r.kind == kindServing {
		auth = certificatesv1.UsageServerAuth
	}
	got := slices.Sorted(slices.Values(r.spec.Usages))
	return slices.Equal(got, sortedUsages(certificatesv1.UsageDigitalSignature, auth)) ||
		slices.Equal(got, sortedUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, auth))
}

func sortedUsages(usages ...certificatesv1.KeyUsage) []certificatesv1.KeyUsage {
	slices.Sort(usages)
	return usages
}
