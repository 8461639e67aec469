package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"wmco/internal/test/simnode/identity"
	"wmco/internal/test/simnode/overlay"
)

// userPrefix begins the user name of a node.
const userPrefix = "system:node:"

// Approve approves the requests of kubelets until the context ends: the first one by the bootstrap user, while there is
// no Node of the name, as the cluster's machine approver does; and serving certificates by the node itself. Renewals of
// client certificates are approved by the controller manager. Only, where set, chooses by node.
func Approve(ctx context.Context, admin *rest.Config, log *slog.Logger, only func(node string) bool) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	return approvePending(ctx, admin, log, func(r *certificatesv1.CertificateSigningRequest, csr *x509.CertificateRequest) bool {
		node, ok := strings.CutPrefix(csr.Subject.CommonName, userPrefix)
		if !ok || !slices.Equal(csr.Subject.Organization, []string{"system:nodes"}) || only != nil && !only(node) {
			return false
		}
		switch r.Spec.SignerName {
		case certificatesv1.KubeAPIServerClientKubeletSignerName:
			_, err := clients.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			return r.Spec.Username == BootstrapUser && apierrors.IsNotFound(err)
		case certificatesv1.KubeletServingSignerName:
			return r.Spec.Username == csr.Subject.CommonName
		}
		return false
	})
}

// approveNetwork approves the requests of hybrid-overlay-node, as ovnkube-identity does: by the node itself, or by the
// certificate that it renews.
func approveNetwork(ctx context.Context, admin *rest.Config, log *slog.Logger) error {
	return approvePending(ctx, admin, log, func(r *certificatesv1.CertificateSigningRequest, csr *x509.CertificateRequest) bool {
		node, ok := strings.CutPrefix(csr.Subject.CommonName, overlay.UserPrefix)
		return ok && r.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && slices.Equal(
			csr.Subject.Organization, []string{overlay.Group},
		) &&
			(r.Spec.Username == userPrefix+node || r.Spec.Username == overlay.UserPrefix+node)
	})
}

// again is after how long a request that is not approved is looked at again.
const again = 5 * time.Second

// approvePending approves what a rule accepts, and leaves the rest alone.
func approvePending(
	ctx context.Context, admin *rest.Config, log *slog.Logger,
	rule func(*certificatesv1.CertificateSigningRequest, *x509.CertificateRequest) bool,
) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	decide := func(o any) {
		r, ok := o.(*certificatesv1.CertificateSigningRequest)
		if !ok || len(r.Status.Conditions) > 0 {
			return
		}
		csr, err := parseRequest(r.Spec.Request)
		if err != nil || !rule(r, csr) {
			return
		}
		r = r.DeepCopy()
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "SimulatedCluster",
			Message: "approved as the cluster would",
		})
		if _, err := requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
			log.Warn("approving a request", "name", r.Name, "error", err)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return requests.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return requests.Watch(ctx, o)
			},
		},
		ObjectType: &certificatesv1.CertificateSigningRequest{},
		// What could not be approved, because the API server was restarting, is retried.
		ResyncPeriod: again,
		Handler:      cache.ResourceEventHandlerFuncs{AddFunc: decide, UpdateFunc: func(_, now any) { decide(now) }},
	})
	controller.RunWithContext(identity.Context(ctx, log))
	return nil
}

func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM text")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
