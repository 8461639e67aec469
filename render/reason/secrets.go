package reason

// Reasons of findings about certificates and secrets.
const (
	CertificateInvalid  = "CertificateInvalid"
	CertificateSkipped  = "CertificateSkipped"
	CertificateExpiring = "CertificateExpiring"
	CertificateExpired  = "CertificateExpired"
	SecretStandIn       = "SecretStandIn"
	TrustedCAIgnored    = "TrustedCAIgnored"
)

func secrets() []Entry {
	return []Entry{
		{CertificateInvalid, errorOrWarning, "A field that must hold PEM certificates holds none. It is a warning in a copy of an object that the cluster makes, which may hold a dummy; the text is then rendered unchanged.", "Correct the field. In a copy with a dummy, nothing."},
		{CertificateSkipped, isWarning, "One PEM block cannot be used. The other certificates of the field are used.", "Remove or correct the block."},
		{CertificateExpiring, isWarning, "A certificate expires within 30 days. Only `wmco validate` checks this.", "Replace the certificate."},
		{CertificateExpired, isWarning, "A certificate has expired. Only `wmco validate` checks this.", "Replace the certificate."},
		{SecretStandIn, isWarning, "The inputs do not hold the value of a secret, as in a must-gather. A marked stand-in is rendered in its place, and the bundle is never applied.", "Add the object with one more `--from`, or read the cluster itself. A pull secret without credentials is `{}`."},
		{TrustedCAIgnored, isInfo, "The ConfigMap trusted-ca has CAs, but the cluster has no proxy. Nodes get CAs of a proxy only with a proxy.", "Nothing, or remove the ConfigMap."},
	}
}
