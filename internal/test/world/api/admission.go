package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// restrictions are the parts of admission that have to do with nodes: NodeRestriction, CertificateApproval and CertificateSubjectRestriction.
type restrictions struct{ may authorizer.Authorizer }

var (
	_ admission.MutationInterface   = restrictions{}
	_ admission.ValidationInterface = restrictions{}
)

// Handles implements admission.Interface.
func (restrictions) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface: it comes before the object is checked.
func (restrictions) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok || a.GetOperation() != admission.Create {
		return nil
	}
	if err := checkSubject(r); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (x restrictions) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	err := x.checkApproval(ctx, a)
	if node, ok := strings.CutPrefix(a.GetUserInfo().GetName(), nodeUser); ok && err == nil {
		err = checkNode(node, a)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// checkApproval checks that whoever approves a request may do so for its signer.
func (x restrictions) checkApproval(ctx context.Context, a admission.Attributes) error {
	r, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok || a.GetSubresource() != "approval" {
		return nil
	}
	is, _, err := x.may.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "approve", APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", Name: r.Spec.SignerName, ResourceRequest: true,
	})
	if err == nil && is != authorizer.DecisionAllow {
		err = fmt.Errorf("user not permitted to approve requests with signerName %q", r.Spec.SignerName)
	}
	return err
}

// checkSubject refuses a request of which nothing can be read, or for a group that may do everything.
func checkSubject(r *certificatesv1.CertificateSigningRequest) error {
	asked, err := ParseRequest(r)
	if err == nil && r.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && slices.Contains(asked.Subject.Organization, user.SystemPrivilegedGroup) {
		err = errors.New("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed")
	}
	return err
}

var errOfOther = errors.New("it is that of another node")

// checkNode is what a kubelet may write of its Node, its Lease and its pods (plugin/pkg/admission/noderestriction of Kubernetes).
func checkNode(node string, a admission.Attributes) error {
	switch a.GetResource().GroupResource().String() {
	case "nodes":
		if a.GetName() != node {
			return errOfOther
		}
		return checkOwnNode(a)
	case "leases.coordination.k8s.io":
		if a.GetName() != node || a.GetNamespace() != corev1.NamespaceNodeLease {
			return errOfOther
		}
	case "pods":
		p, ok := a.GetOldObject().(*corev1.Pod)
		if !ok || p.Spec.NodeName != node {
			return errOfOther
		}
	}
	return nil
}

func checkOwnNode(a admission.Attributes) error {
	now, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	before, is := a.GetOldObject().(*corev1.Node)
	if !is {
		before = &corev1.Node{}
	}
	for key, value := range now.Labels {
		if was, ok := before.Labels[key]; (!ok || was != value) && isRestricted(key) {
			return fmt.Errorf("label %s", key)
		}
	}
	for key := range before.Labels {
		if _, ok := now.Labels[key]; !ok && isRestricted(key) {
			return fmt.Errorf("label %s", key)
		}
	}
	if is && !apiequality.Semantic.DeepEqual(now.Spec.Taints, before.Spec.Taints) {
		return errors.New("taints")
	}
	if len(now.OwnerReferences) > len(before.OwnerReferences) {
		return errors.New("owners")
	}
	return nil
}

// isRestricted reports whether a kubelet cannot write a label.
func isRestricted(key string) bool {
	of, _, _ := strings.Cut(key, "/")
	is := func(domain string) bool { return of == domain || strings.HasSuffix(of, "."+domain) }
	return is("node-restriction.kubernetes.io") || (is("kubernetes.io") || is("k8s.io")) && !kubeletapis.IsKubeletLabel(key)
}
