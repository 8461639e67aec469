package prerequisites

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// caUntil returns a CA in PEM that ends at the beginning of a day.
func caUntil(t *testing.T, day string) string {
	t.Helper()
	end, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestTheEndOfTheCAsOfWaitingNodes is that of the last one of each bundle.
func TestTheEndOfTheCAsOfWaitingNodes(t *testing.T) {
	got := waitingCAs(caUntil(t, "2027-01-02")+caUntil(t, "2028-03-04")+"damaged", caUntil(t, "2036-05-06"))
	if !strings.Contains(got, "oc exec fail there from 2028-03-04") || !strings.Contains(got, "trust the API server from 2036-05-06") || strings.Contains(got, "2027") {
		t.Errorf("got %q", got)
	}
	if got := waitingCAs("no PEM", ""); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
