// Package policies applies the policies of deploy/admission and deploy/network, where the operator may.
package policies

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base/named"
	"wmco/controller/gather/objects"
	"wmco/deploy/admission"
	"wmco/deploy/network"
)

// SecretWritesBound is the type of the condition that an admission policy refuses Secrets that the operator has no
// reason to write.
const SecretWritesBound = "SecretWritesBound"

// ReasonPolicyNotApplied is the reason of a condition that lacks a policy.
const ReasonPolicyNotApplied = "PolicyNotApplied"

// Policies are the admission policies of deploy/admission. The manifests install them; a bundle of OLM cannot carry a
// policy, so there the operator may apply them, by their names.
type Policies struct {
	// Live reads from the API server, and Client writes.
	Live   client.Reader
	Client client.Client
	// Namespace is that of the operator.
	Namespace string
}

// BindOperator makes sure that the policy about the operator's own Secrets is in the cluster, as it must be.
func (p Policies) BindOperator(ctx context.Context) error {
	return p.ensurePolicy(ctx, func() (*admissionv1.ValidatingAdmissionPolicy,
		*admissionv1.ValidatingAdmissionPolicyBinding) {
		return admission.OperatorSecrets(p.Namespace)
	})
}

// BindCloudIdentities makes sure that the policy is in the cluster that holds a cloud-node-manager to its own Node.
func (p Policies) BindCloudIdentities(ctx context.Context) error {
	return p.ensurePolicy(ctx, admission.CloudNodeManager)
}

// LimitPorts makes sure that there is a NetworkPolicy for the ports of the operator. One that there is stays as it is:
// administrators may let in whom they like.
func (p Policies) LimitPorts(ctx context.Context) error {
	want, err := network.Policy(p.Namespace)
	if err != nil {
		return err
	}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(want),
		objects.NewObject(want.GroupVersionKind())); !apierrors.IsNotFound(err) {
		return err
	}
	return named.CreateIfAbsent(ctx, p.Client, want)
}

func (p Policies) ensurePolicy(ctx context.Context,
	pair func() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding)) error {
	policy, binding := pair()
	if err := p.applyPolicy(ctx, policy); err != nil {
		return err
	}
	return p.applyPolicy(ctx, binding)
}

// applyPolicy writes the object, if the cluster has another one or none. A right to write is needed only then.
func (p Policies) applyPolicy(ctx context.Context, want client.Object) error {
	kind := want.GetObjectKind().GroupVersionKind()
	have := objects.NewObject(kind)
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		return named.CreateIfAbsent(ctx, p.Client, want)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster does not serve %s", kind.Kind)
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind.Kind, want.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	// With nothing added: one more condition of a match would let through refused writes.
	if err != nil || equality.Semantic.DeepEqual(have.Object["spec"], content["spec"]) {
		return err
	}
	// The whole of it: a list that is applied would keep what others have added.
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": content["spec"]}})
	if err != nil {
		return err
	}
	if err := p.Client.Patch(ctx, have, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("restoring %s %s, which is not as it must be: %w", kind.Kind, want.GetName(), err)
	}
	return nil
}
