package reason

// Reasons of findings about certificates and secrets.
const (
	CertificateInvalid  = "CertificateInvalid"
	CertificateSkipped  = "CertificateSkipped"
	CertificateExpiring = "CertificateExpiring"
	CertificateExpired  = "CertificateExpired"
	SecretStandIn       = "SecretStandIn"
	TrustedCAIgnored    = "TrustedCAIgnored"
	PrivateKeyMissing   = "PrivateKeyMissing"
	PrivateKeyNotPEM    = "PrivateKeyNotPEM"
	PrivateKeyLocked    = "PrivateKeyLocked"
	PrivateKeyWeak      = "PrivateKeyWeak"
	PrivateKeyMalformed = "PrivateKeyMalformed"
	PrivateKeyAmbiguous = "PrivateKeyAmbiguous"
)

func secretReasons() []Entry {
	return []Entry{
		{CertificateInvalid, errorOrWarning, "A field for PEM certificates has none. Warning in a copy of an object that the cluster makes, which may be a dummy.", "Correct the field; for a dummy, nothing."},
		{CertificateSkipped, isWarning, "A PEM block cannot be used. The other certificates of the field are used.", "Remove or correct the block."},
		{CertificateExpiring, isWarning, "A certificate expires within 30 days." + byValidate, "Replace the certificate."},
		{CertificateExpired, isWarning, "A certificate has expired." + byValidate, "Replace the certificate."},
		{SecretStandIn, isWarning, "The inputs lack the value of a secret, as in a must-gather. A marked stand-in is rendered, and the bundle is never applied.", "Add the object, or read the cluster. A pull secret without credentials is `{}`."},
		{PrivateKeyMissing, isError, "The Secret cloud-private-key does not exist, or lacks `private-key.pem`. No host can join." + byOperator, "Create the Secret with a key without a passphrase."},
		{PrivateKeyNotPEM, isError, "The operator's private key is not PEM: a public key, a PuTTY key, or text that was encoded twice." + byOperator, "Give the file that `ssh-keygen` wrote, unchanged."},
		{PrivateKeyLocked, isError, "The operator's private key has a passphrase." + byOperator, "Remove the passphrase from a copy: `ssh-keygen -p -N '' -f <copy>`."},
		{PrivateKeyWeak, isError, "SSH servers refuse the operator's private key: DSA, RSA of less than 2048 bits, or a curve other than P-256, P-384, P-521 and Ed25519." + byOperator, "Create another key: `ssh-keygen -t ed25519`."},
		{PrivateKeyMalformed, isError, "The operator's private key is damaged: incomplete, indented, or of a kind that SSH does not have." + byOperator, "Give the file that `ssh-keygen` wrote, unchanged."},
		{PrivateKeyAmbiguous, isError, "The Secret cloud-private-key has several private keys." + byOperator, "Keep the one whose public key the hosts have."},
		{TrustedCAIgnored, isInfo, "The ConfigMap trusted-ca has CAs, but nodes get them only in a cluster with a proxy.", "None, or remove the ConfigMap."},
	}
}
