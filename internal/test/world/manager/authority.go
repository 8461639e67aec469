package manager

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"

	"wmco/internal/test/simnode/identity"
	"wmco/internal/test/world/api"
)

// Authority is the CA of a cluster.
type Authority struct {
	Certificate *x509.Certificate
	// PEM is the certificate as text.
	PEM []byte
	key crypto.Signer
}

// NewAuthority returns a CA that is as old as the moment.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "world", NotBefore: time.Now()}, key)
	if err != nil {
		return nil, err
	}
	text, err := certutil.EncodeCertificates(cert)
	return &Authority{cert, text, key}, err
}

// Signing is how an Authority signs.
type Signing struct {
	// Lifetime is that of certificates whose requests do not ask for a shorter one.
	Lifetime time.Duration
	Log      *slog.Logger
}

// resync is the time between two looks at a request for which nothing could be done.
const resync = time.Minute

// Run signs approved requests until the context ends, approves what kubelets renew themselves, and removes requests as
// kube-controller-manager does (pkg/controller/certificates: signer, approver, cleaner).
func (a *Authority) Run(ctx context.Context, admin *rest.Config, s Signing) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	decide := func(o any) {
		r, ok := o.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return
		}
		if err := a.handleRequest(ctx, requests, s, r.DeepCopy()); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			s.Log.Warn("handling a request for a certificate", "name", r.Name, "error", err)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return requests.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return requests.Watch(ctx, o)
			},
		},
		ObjectType: &certificatesv1.CertificateSigningRequest{}, ResyncPeriod: resync,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: decide, UpdateFunc: func(_, now any) { decide(now) }},
	})
	controller.RunWithContext(identity.Context(ctx, s.Log))
	return nil
}

// Ages at which requests are removed (pkg/controller/certificates/cleaner).
const (
	decidedFor = time.Hour
	pendingFor = 24 * time.Hour
)

func (a *Authority) handleRequest(ctx context.Context, to certificatesclient.CertificateSigningRequestInterface, s Signing, r *certificatesv1.CertificateSigningRequest) error {
	age := time.Since(r.CreationTimestamp.Time)
	is := func(kind certificatesv1.RequestConditionType) bool { return hasCondition(r, kind) }
	decided := is(certificatesv1.CertificateApproved) || is(certificatesv1.CertificateDenied) || is(certificatesv1.CertificateFailed)
	switch {
	case decided && age > decidedFor, age > pendingFor:
		return to.Delete(ctx, r.Name, metav1.DeleteOptions{})
	case !decided && isOwnRenewal(r):
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: "the kubelet renews its certificate",
		})
		_, err := to.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{})
		return err
	case is(certificatesv1.CertificateApproved) && !is(certificatesv1.CertificateFailed) && len(r.Status.Certificate) == 0:
		cert, err := a.signRequest(r, s.Lifetime)
		if err != nil {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(),
			})
		}
		r.Status.Certificate = cert
		_, err = to.UpdateStatus(ctx, r, metav1.UpdateOptions{})
		return err
	}
	return nil
}

func hasCondition(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}

// isOwnRenewal reports whether a kubelet asks for its own client certificate, with the one that it has.
func isOwnRenewal(r *certificatesv1.CertificateSigningRequest) bool {
	asked, err := api.ParseRequest(r)
	return err == nil && r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && slices.Contains(r.Spec.Groups, user.NodesGroup) &&
		r.Spec.Username == asked.Subject.CommonName && checkKubelet(asked, r.Spec.Usages, certificatesv1.UsageClientAuth) == nil
}

// backdated is how much older than its request a certificate is.
const backdated = 5 * time.Minute

// sign returns the certificate as text. An error says why the signer refuses the request.
func (a *Authority) signRequest(r *certificatesv1.CertificateSigningRequest, lifetime time.Duration) ([]byte, error) {
	asked, err := api.ParseRequest(r)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: asked.Subject, DNSNames: asked.DNSNames, IPAddresses: asked.IPAddresses, EmailAddresses: asked.EmailAddresses, URIs: asked.URIs,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	switch r.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		template.ExtKeyUsage, err = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, checkKubelet(asked, r.Spec.Usages, certificatesv1.UsageClientAuth)
	case certificatesv1.KubeletServingSignerName:
		template.ExtKeyUsage, err = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, checkKubelet(asked, r.Spec.Usages, certificatesv1.UsageServerAuth)
	case certificatesv1.KubeAPIServerClientSignerName:
		template.ExtKeyUsage, err = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, checkUsages(r.Spec.Usages, certificatesv1.UsageClientAuth)
	default:
		return nil, fmt.Errorf("%s is no signer of this cluster", r.Spec.SignerName)
	}
	if err != nil {
		return nil, err
	}
	if s := r.Spec.ExpirationSeconds; s != nil {
		lifetime = min(lifetime, time.Duration(*s)*time.Second)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil { //nolint:mnd // any number
		return nil, err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-backdated), time.Now().Add(lifetime-backdated)
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, asked.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), nil
}

// checkKubelet checks what the two signers of kubelets ask of a request (kubernetes.io/docs/reference/access-authn-authz/
// certificate-signing-requests, Kubernetes signers).
func checkKubelet(asked *x509.CertificateRequest, usages []certificatesv1.KeyUsage, with certificatesv1.KeyUsage) error {
	names := len(asked.DNSNames) + len(asked.IPAddresses)
	switch {
	case !slices.Equal(asked.Subject.Organization, []string{user.NodesGroup}) || !strings.HasPrefix(asked.Subject.CommonName, "system:node:"):
		return errors.New("subject is not that of a node")
	case len(asked.EmailAddresses)+len(asked.URIs) > 0:
		return errors.New("email and URI names are not allowed")
	case with == certificatesv1.UsageClientAuth && names > 0:
		return errors.New("names and addresses are not allowed")
	case with == certificatesv1.UsageServerAuth && names == 0:
		return errors.New("DNS or IP subjectAltName is required")
	}
	return checkUsages(usages, with)
}

func checkUsages(usages []certificatesv1.KeyUsage, with certificatesv1.KeyUsage) error {
	for _, u := range usages {
		if u != with && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return fmt.Errorf("usage %s is not allowed", u)
		}
	}
	if !slices.Contains(usages, with) {
		return fmt.Errorf("usage %s is missing", with)
	}
	return nil
}
