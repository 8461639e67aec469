package render

import (
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// soon is how long before it expires a certificate is reported.
const soon = 30 * 24 * time.Hour

// Expiring returns findings about certificates that have expired or soon will. Nothing else in this package depends on
// the time.
func (c Cluster) Expiring(now time.Time) bundle.Findings {
	var findings bundle.Findings
	for _, t := range c.pemTexts() {
		certs, _ := parsePEM(t.text)
		for _, cert := range certs {
			left := cert.parsed.NotAfter.Sub(now)
			if left > soon {
				continue
			}
			why, verb := reason.CertificateExpiring, "expires"
			if left <= 0 {
				why, verb = reason.CertificateExpired, "expired"
			}
			findings = append(findings, bundle.Finding{
				Severity: bundle.SeverityWarning, Reason: why, Object: c.Origins[t.origin], Field: t.field,
				Message: fmt.Sprintf(
					"%s %s on %s", cert.parsed.Subject, verb, cert.parsed.NotAfter.UTC().Format(time.DateOnly),
				), Fix: "replace the certificate",
			})
		}
	}
	return findings
}
