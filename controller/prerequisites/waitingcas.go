package prerequisites

import (
	"crypto/x509"
	"encoding/pem"
	"time"
)

// waitingCAs returns until when nodes that wait for adoption can have CAs in force: their CAs were in the cluster
// before, and gets no later one. Empty is not known.
func waitingCAs(clientCAs, serverCAs string) string {
	var text string
	if end := lastEnd(clientCAs); !end.IsZero() {
		text += "; oc logs and oc exec fail there from " + end.Format(time.DateOnly) + " at the latest"
	}
	if end := lastEnd(serverCAs); !end.IsZero() {
		text += "; their kubelets do not trust the API server from " + end.Format(time.DateOnly) + " at the latest"
	}
	return text
}

// lastEnd returns when the last of the CAs in PEM text ends; zero if there is none.
func lastEnd(text string) time.Time {
	var last time.Time
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return last
		}
		if ca, err := x509.ParseCertificate(block.Bytes); err == nil && ca.NotAfter.After(last) {
			last = ca.NotAfter.UTC()
		}
	}
}
