package render

import (
	"fmt"
	"time"

	"wmco/render/bundle"
)

// soon is how long before its end a certificate is worth a word.
const soon = 30 * 24 * time.Hour

// Expiring finds certificates that have expired or soon will. The time is an argument: rendering itself knows none.
func (c Cluster) Expiring(now time.Time) bundle.Findings {
	var findings bundle.Findings
	check := func(origin Origin, field, text string) {
		certs, _ := parsePEM(text)
		for _, cert := range certs {
			left := cert.parsed.NotAfter.Sub(now)
			if left > soon {
				continue
			}
			reason, verb := "CertificateExpiring", "expires"
			if left <= 0 {
				reason, verb = "CertificateExpired", "expired"
			}
			findings = append(findings, bundle.Finding{
				Severity: bundle.SeverityWarning, Reason: reason, Object: c.Origins[origin], Field: field,
				Message: fmt.Sprintf("%s %s on %s", cert.parsed.Subject, verb, cert.parsed.NotAfter.UTC().Format(time.DateOnly)), Fix: "replace the certificate",
			})
		}
	}
	check(FromTrustedCA, `data["ca-bundle.crt"]`, c.TrustedCAs)
	check(FromControllers, "spec.kubeAPIServerServingCAData", c.KubeletClientCA)
	check(FromBootstrap, `data["ca.crt"]`, c.Bootstrap.CA)
	check(FromExporterTLS, `data["tls.crt"]`, c.Exporter.Certificate)
	for _, ca := range c.RegistryCAs {
		check(FromControllers, "spec.imageRegistryBundleData["+ca.Registry+"]", ca.PEM)
	}
	return findings
}
