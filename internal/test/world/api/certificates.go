package api

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// ParseRequest returns the signed request of a CertificateSigningRequest.
func ParseRequest(r *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return parsed, parsed.CheckSignature()
}

// setRequester writes who makes a request for a certificate, whatever that says.
func setRequester(ctx context.Context, r *certificatesv1.CertificateSigningRequest) {
	r.Status = certificatesv1.CertificateSigningRequestStatus{}
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
	who, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	r.Spec.Username, r.Spec.UID, r.Spec.Groups = who.GetName(), who.GetUID(), who.GetGroups()
	for key, values := range who.GetExtra() {
		if r.Spec.Extra == nil {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		r.Spec.Extra[key] = values
	}
}

// validateRequest checks what is requested.
func validateRequest(o runtime.Object) (all field.ErrorList) {
	r, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	at := field.NewPath("spec")
	if _, err := ParseRequest(r); err != nil {
		all = append(all, field.Invalid(at.Child("request"), r.Spec.Request, err.Error()))
	}
	if len(r.Spec.Usages) == 0 {
		all = append(all, field.Required(at.Child("usages"), ""))
	}
	if r.Spec.SignerName == "" {
		all = append(all, field.Required(at.Child("signerName"), ""))
	}
	if s := r.Spec.ExpirationSeconds; s != nil && *s < 600 { //nolint:mnd // ten minutes
		all = append(all, field.Invalid(at.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return all
}

// keepRequest keeps what an update of a request for a certificate, of its approval, or of its status cannot change.
func (s strategy) keepRequest(now, old *certificatesv1.CertificateSigningRequest) {
	now.Spec = old.Spec
	switch {
	case s.approval:
		now.Status.Certificate = old.Status.Certificate
	case s.status:
		for _, kind := range decisions() {
			is, was := conditionsOf(now, kind), conditionsOf(old, kind)
			if len(is) == len(was) {
				for i := range is {
					*is[i] = *was[i]
				}
			}
		}
	default:
		now.Status = old.Status
	}
	for i := range now.Status.Conditions {
		c := &now.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = metav1.Now()
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = metav1.Now()
			for _, before := range conditionsOf(old, c.Type) {
				if before.Status == c.Status {
					c.LastTransitionTime = before.LastTransitionTime
				}
			}
		}
	}
}

// validateKept refuses an update that adds or removes a decision by the status, removes one by the approval, or replaces a certificate.
func (s strategy) validateKept(o, old runtime.Object) (all field.ErrorList) {
	now, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	before := old.(*certificatesv1.CertificateSigningRequest)
	at := field.NewPath("status", "conditions")
	for _, kind := range append(decisions(), certificatesv1.CertificateFailed) {
		is, was := len(conditionsOf(now, kind)), len(conditionsOf(before, kind))
		if is < was || is > was && s.status && kind != certificatesv1.CertificateFailed {
			all = append(all, field.Forbidden(at, "updates may not add or remove a condition of type "+string(kind)))
		}
	}
	if len(before.Status.Certificate) > 0 && !slices.Equal(before.Status.Certificate, now.Status.Certificate) {
		all = append(all, field.Forbidden(field.NewPath("status", "certificate"), "updates may not replace or remove the certificate"))
	}
	return all
}

// decisions are the conditions that the approval alone has.
func decisions() []certificatesv1.RequestConditionType {
	return []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}
}

func conditionsOf(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) (all []*certificatesv1.CertificateSigningRequestCondition) {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == kind {
			all = append(all, &r.Status.Conditions[i])
		}
	}
	return all
}
