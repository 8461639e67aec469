package bundle_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"wmco/bundle"
)

// authority returns a CA in PEM.
func authority(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestAKubeletOfAnotherClusterIsRecognized by the API server of its kubeconfig. One CA that two clusters share makes them no single one.
func TestAKubeletOfAnotherClusterIsRecognized(t *testing.T) {
	t.Parallel()
	const (
		own, other = "https://api-int.a.example.com:6443", "https://api-int.b.example.com:6443"
		program    = `C:\k\kube-log-runner.exe`
	)
	ca, old, corporate := authority(t), authority(t), authority(t)
	digests := func(text ...string) []bundle.Digest {
		return bundle.CertificateDigests([]byte("# roots\n" + strings.Join(text, "")))
	}
	for name, tt := range map[string]struct {
		kubelet bundle.Kubelet
		foreign string
	}{
		"no kubelet":                              {bundle.Kubelet{Server: other}, ""},
		"ours":                                    {bundle.Kubelet{Program: program, Server: own, CAs: digests(ca)}, ""},
		"ours, written otherwise":                 {bundle.Kubelet{Program: program, Server: "https://API-INT.a.example.com:6443/"}, ""},
		"ours, of an earlier installation":        {bundle.Kubelet{Program: program, Server: own, CAs: digests(old)}, ""},
		"ours, at another URL":                    {bundle.Kubelet{Program: program, Server: other, CAs: digests(ca)}, ""},
		"one that has not joined":                 {bundle.Kubelet{Program: program}, ""},
		"another cluster":                         {bundle.Kubelet{Program: program, Server: other, CAs: digests(old)}, "api-int.b.example.com"},
		"another cluster that shares a CA":        {bundle.Kubelet{Program: program, Server: other, CAs: digests(old, corporate)}, "api-int.b.example.com"},
		"another cluster, its CA unknown":         {bundle.Kubelet{Program: program, Server: other}, "api-int.b.example.com"},
		"another cluster at another port":         {bundle.Kubelet{Program: program, Server: "https://api-int.a.example.com"}, "another cluster"},
		"another product's, its cluster not read": {bundle.Kubelet{Program: `D:\rke\kubelet.exe`}, "cannot be read"},
		"a text that is no URL":                   {bundle.Kubelet{Program: program, Server: "\x1b[2J" + strings.Repeat("x", 1000)}, "another cluster"},
	} {
		why, fix := tt.kubelet.BelongsElsewhere([]string{own}, ca+corporate)
		if (why != "") != (tt.foreign != "") || !strings.Contains(why, tt.foreign) || (why == "") != (fix == "") || len(why) > 400 || strings.Contains(why, "\x1b") {
			t.Errorf("%s: got %q, %q", name, why, fix)
		}
	}
	if why, _ := (bundle.Kubelet{Program: program, Server: other}).BelongsElsewhere(nil, ""); why != "" {
		t.Errorf("without a cluster: %q", why)
	}
}

// TestTheKubeletIsNotReported: what a Node reports has nothing that would keep it from being updated.
func TestTheKubeletIsNotReported(t *testing.T) {
	t.Parallel()
	f := bundle.Facts{Schema: bundle.FactsSchema, Kubelet: bundle.Kubelet{Program: "p", Server: "s"}}
	if got := f.InReportForm(nil).Kubelet; got.Program != "" || got.Server != "" {
		t.Errorf("reported %+v", got)
	}
}
