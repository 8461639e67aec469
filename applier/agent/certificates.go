package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requestsPath is where requests for certificates are.
func requestsPath(name ...string) []string {
	return append([]string{"apis/certificates.k8s.io/v1/certificatesigningrequests"}, name...)
}

// NodeName implements Certificates.
func (s *APIServer) NodeName() (string, error) {
	l, err := s.currentLink()
	if err != nil {
		return "", err
	}
	return l.node, nil
}

// RequestCertificate implements Certificates. Every node may make requests (kubernetes.io/docs/reference/access-authn-authz/node); their
// contents are for the approver to judge (controller/csr/certificates).
func (s *APIServer) RequestCertificate(ctx context.Context, csr []byte) (string, error) {
	l, err := s.currentLink()
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(&certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "cloud-node-manager-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: csr, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	})
	if err != nil {
		return "", err
	}
	var made certificatesv1.CertificateSigningRequest
	err = l.doRequest(ctx, call{http.MethodPost, requestsPath(), "application/json", body}, &made)
	return made.Name, err
}

// IssuedCertificate implements Certificates.
func (s *APIServer) IssuedCertificate(ctx context.Context, name string) ([]byte, error) {
	l, err := s.currentLink()
	if err != nil {
		return nil, err
	}
	var r certificatesv1.CertificateSigningRequest
	err = l.doRequest(ctx, call{http.MethodGet, requestsPath(name), "", nil}, &r)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: it does not exist any longer", ErrNotIssued)
	case err != nil:
		return nil, err
	}
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return nil, fmt.Errorf("%w: %s: %s", ErrNotIssued, c.Type, c.Message)
		}
	}
	return r.Status.Certificate, nil
}
