package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"wmco/bundle"
)

// keys are made once: the kubelet's, and others.
var keys = struct{ kubelet, other, rsa, large crypto.Signer }{newKey(), newKey(), newRSA(), newLargeRSA()}

func newKey() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newRSA() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// newLargeRSA is made of many primes, which takes a second.
func newLargeRSA() crypto.Signer {
	key, err := rsa.GenerateMultiPrimeKey(rand.Reader, 9, maxKeyBits+64) //nolint:staticcheck // it is for no more than this
	if err != nil {
		panic(err)
	}
	return key
}

// ask is a CSR before it is signed.
type ask struct {
	signer, user string
	groups       []string
	usages       []certificatesv1.KeyUsage
	template     x509.CertificateRequest
	key          crypto.Signer
}

func (a ask) object(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: a.signer, Username: a.user, Groups: a.groups, Usages: a.usages,
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

func subject(user, group string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{group}}}
}

var (
	clientUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	serverUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	nodeGroups   = []string{"system:nodes", "system:authenticated"}
)

// The three requests that are approved.
func clientOf(node string) ask {
	return ask{
		certificatesv1.KubeAPIServerClientKubeletSignerName, "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		[]string{"system:serviceaccounts", "system:authenticated"}, clientUsages, subject("system:node:"+node, "system:nodes"), keys.kubelet,
	}
}

func servingOf(node string, sans ...string) ask {
	a := ask{certificatesv1.KubeletServingSignerName, "system:node:" + node, nodeGroups, serverUsages, subject("system:node:"+node, "system:nodes"), keys.kubelet}
	for _, s := range sans {
		if ip := net.ParseIP(s); ip != nil {
			a.template.IPAddresses = append(a.template.IPAddresses, ip)
		} else {
			a.template.DNSNames = append(a.template.DNSNames, s)
		}
	}
	return a
}

func cloudOf(node string) ask {
	return ask{certificatesv1.KubeAPIServerClientSignerName, "system:node:" + node, nodeGroups, clientUsages, subject("windows-cloud-node-manager:"+node, "windows-cloud-node-managers"), keys.kubelet}
}

func pending(key crypto.Signer) []byte {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err)
	}
	return der
}

// known has two instances and a Machine. win-a is asked for its first certificate; win-b has joined.
func known() Known {
	return Known{
		Platform: bundle.PlatformAzure,
		Hosts: []Host{
			{
				Address: "10.0.0.5", Name: "win-a", PendingKey: pending(keys.kubelet), Lookups: []string{"win-a.ptr.example.com."},
				Facts:   bundle.Facts{Schema: 1, HostName: "WIN-A", DNSSuffix: "corp.example.com", Addresses: []string{"10.0.0.5", "fd00::5", "127.0.0.1", "fe80::1", "10.0.0.1", "10.0.0.9", "10.0.0.10", "10.0.0.11", "10.132.0.2"}},
				Reached: []string{"fd00::5", "127.0.0.1", "fe80::1", "10.0.0.1", "10.0.0.9", "10.0.0.10", "10.132.0.2"},
			},
			{
				Address: "win-b.example.com", Name: "win-b", Lookups: []string{"10.0.0.6", "win-m", "kubernetes.default.svc", "master-0"},
				Facts: bundle.Facts{Schema: 1, HostName: "win-b", Addresses: []string{"10.0.0.6"}}, Reached: []string{"10.0.0.6"},
			},
			{Machine: "win-m", Name: "win-m"},
		},
		Nodes:    []string{"master-0", "win-b", "win-m"},
		Reserved: []string{"10.0.0.1", "api-int.example.com", "10.0.0.9"},
		Domains:  []string{"apps.example.com"},
		Networks: []netip.Prefix{netip.MustParsePrefix("10.132.0.0/14")},
		Others:   []string{"10.0.0.10", "10.0.0.5", "win-away"},
	}
}

// change is a way in which a request, or the known facts, differ from the right ones.
type change func(*ask, *Known)

func decide(t testing.TB, a ask, change change) Verdict {
	t.Helper()
	k := known()
	if change != nil {
		change(&a, &k)
	}
	return DecideRequest(a.object(t), k)
}
