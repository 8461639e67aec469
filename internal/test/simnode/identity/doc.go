// Package identity gives programs of simulated machines their client certificates: requested, kept in files and renewed
// by k8s.io/client-go/util/certificate, as the real programs do.
//
//	Manager: CertificateSigningRequest --approved and signed by the cluster--> Store: PEM files of the machine
//	Client: requests with the certificate that the Manager has, also after it was renewed
package identity
