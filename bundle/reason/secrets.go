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
		{CertificateInvalid, errorOrWarning, "A field that must hold PEM certificates holds none. It is a warning in a copy of an object that the cluster makes, which may hold a dummy; the text is then rendered unchanged.", "Correct the field. In a copy with a dummy, nothing."},
		{CertificateSkipped, isWarning, "One PEM block cannot be used. The other certificates of the field are used.", "Remove or correct the block."},
		{CertificateExpiring, isWarning, "A certificate expires within 30 days. Only `wmco validate` checks this.", "Replace the certificate."},
		{CertificateExpired, isWarning, "A certificate has expired. Only `wmco validate` checks this.", "Replace the certificate."},
		{SecretStandIn, isWarning, "The inputs do not hold the value of a secret, as in a must-gather. A marked stand-in is rendered in its place, and the bundle is never applied.", "Add the object with one more `--from`, or read the cluster itself. A pull secret without credentials is `{}`."},
		{PrivateKeyMissing, isError, "The operator has no private key: the Secret cloud-private-key does not exist, or has no key `private-key.pem`. Only the operator reports this. No host can join; nodes that have joined keep working.", "Create the Secret with a key without a passphrase."},
		{PrivateKeyNotPEM, isError, "The operator's private key is not in PEM: a public key, a key of PuTTY, or text that was encoded twice. Only the operator reports this.", "Give the file that `ssh-keygen` wrote, unchanged."},
		{PrivateKeyLocked, isError, "The operator's private key has a passphrase. Only the operator reports this.", "Remove the passphrase from a copy: `ssh-keygen -p -N '' -f <copy>`."},
		{PrivateKeyWeak, isError, "The operator's private key is of a kind or size that SSH servers refuse: DSA, RSA of less than 2048 bits, or another curve than P-256, P-384, P-521 and Ed25519. Only the operator reports this.", "Create another key: `ssh-keygen -t ed25519`."},
		{PrivateKeyMalformed, isError, "The operator's private key is damaged: incomplete, indented, or of a kind that SSH does not have. Only the operator reports this.", "Give the file that `ssh-keygen` wrote, unchanged."},
		{PrivateKeyAmbiguous, isError, "The Secret cloud-private-key has several private keys. Only the operator reports this.", "Give the one whose public key the hosts have."},
		{TrustedCAIgnored, isInfo, "The ConfigMap trusted-ca has CAs, but the cluster has no proxy. Nodes get CAs of a proxy only with a proxy.", "Nothing, or remove the ConfigMap."},
	}
}
