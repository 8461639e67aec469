package render

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
)

// certificate is one CA with its DER bytes.
type certificate struct {
	der    []byte
	parsed *x509.Certificate
}

// parsePEM returns the certificates of a PEM text in their order, each once, and the problems of other blocks, which
// it names by their number. Text between blocks, CRLF and a missing newline at the end are accepted.
func parsePEM(text string) ([]certificate, []string) {
	var certs []certificate
	var problems []string
	seen := map[[sha256.Size]byte]bool{}
	rest := []byte(text)
	for n := 1; ; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			problems = append(problems, fmt.Sprintf("block %d is a %s, not a CERTIFICATE", n, block.Type))
			continue
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			problems = append(problems, fmt.Sprintf("block %d is not a certificate: %v", n, err))
			continue
		}
		if sum := sha256.Sum256(block.Bytes); !seen[sum] {
			seen[sum] = true
			certs = append(certs, certificate{der: block.Bytes, parsed: parsed})
		}
	}
	if strings.TrimSpace(text) != "" && len(certs) == 0 && len(problems) == 0 {
		problems = append(problems, "contains no certificate")
	}
	if strings.Count(text, "-----BEGIN") > len(certs)+len(problems)+countRepeats(text, len(certs)) {
		problems = append(problems, "a block is incomplete or malformed")
	}
	return certs, problems
}

// countRepeats counts the well-formed blocks of text beyond the n distinct ones.
func countRepeats(text string, n int) int {
	total := 0
	for rest := []byte(text); ; total++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return max(0, total-n)
		}
	}
}

func encodePEM(certs []certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		// Encoding to a buffer cannot fail, and a certificate block has no headers that could be invalid.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.der})
	}
	return out.Bytes()
}

// trustedCAs returns the proxy's CAs first, then those of registries, each once.
func (c Cluster) trustedCAs() []certificate {
	var all strings.Builder
	all.WriteString(c.TrustedCAs)
	for _, r := range c.RegistryCAs {
		all.WriteString("\n" + r.PEM)
	}
	certs, _ := parsePEM(all.String())
	return certs
}

func (e *emitter) trustEntries() {
	certs := e.cluster.trustedCAs()
	e.addFile(rowTrustedCAs, func(Cluster) ([]byte, error) {
		if len(certs) == 0 {
			return nil, nil
		}
		return encodePEM(certs), nil
	})
	r, ok := e.wantedRow(rowRootCA)
	if !ok {
		return
	}
	for _, c := range certs {
		ca := bundle.TrustedCA{
			Digest: bundle.Of(c.der), Subject: strings.ToValidUTF8(c.parsed.Subject.String(), "?"), NotAfter: c.parsed.NotAfter.UTC().Format(time.RFC3339),
			Impact: r.Impact, Content: bundle.Content{Data: c.der},
		}
		e.layer.TrustedCAs = append(e.layer.TrustedCAs, ca)
		e.addCauses(r, string(ca.Digest))
	}
	if len(e.options.SigningKeys) > 0 { // an empty file would be one without a key that is trusted
		e.addFile(rowSigningKeys, func(Cluster) ([]byte, error) { return e.options.SigningKeys, nil })
	}
	e.addFile(rowKubeletCA, func(c Cluster) ([]byte, error) { return normalizePEM(c.KubeletClientCA), nil })
	e.addFile(rowBootstrapCA, func(c Cluster) ([]byte, error) { return normalizePEM(c.Bootstrap.CA), nil })
}

// normalizePEM encodes the certificates of a text; a text without any, such as a stand-in, is returned unchanged.
func normalizePEM(text string) []byte {
	if text == "" {
		return nil
	}
	certs, _ := parsePEM(text)
	if len(certs) == 0 {
		return []byte(strings.TrimSuffix(text, "\n") + "\n")
	}
	return encodePEM(certs)
}
