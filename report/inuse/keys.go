package inuse

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/controller/keys/signing"
)

// LookUpKeys returns the public halves of the keys with which the operator of a namespace signs. They come from its
// Secret alone: Nodes may name an older layer, which whoever may patch Nodes can set. A finding of severity
// info explains why no key is known.
func LookUpKeys(ctx context.Context, r objects.Reader, namespace string) (published.Keys, bundle.Findings, error) {
	ref := bundle.Ref{Kind: "Secret", Namespace: namespace, Name: signing.SecretName}
	unknown := func(why, fix string) bundle.Findings {
		return bundle.Findings{{
			Severity: bundle.SeverityInfo, Reason: reason.SigningKeysUnknown, Object: ref,
			Message: "the keys with which the operator signs are not known, so bundles bring none: " + why, Fix: fix,
		}}
	}
	set, err := r.Read(ctx, []objects.Want{{Version: "v1", Kind: ref.Kind, Namespace: namespace, Names: []string{ref.Name}}})
	switch {
	case err != nil:
		return nil, nil, err
	case len(set.Findings) > 0:
		return nil, unknown(set.Findings[0].Message, set.Findings[0].Fix), nil
	case len(set.Objects) == 0:
		return nil, unknown(
			"the Secret does not exist",
			"none if the cluster has no operator; otherwise give its namespace with -n",
		), nil
	}
	var secret corev1.Secret
	if json.Unmarshal(set.Objects[0].JSON, &secret) != nil { // its error may quote content
		return nil, nil, fmt.Errorf("reading %s: it is not a Secret", ref)
	}
	keys, err := signing.PublicKeysIn(&secret)
	switch {
	case err != nil:
		return nil, unknown(
			err.Error(), "remove invalid keys from the Secret; the operator creates another one if none is left",
		), nil
	case len(keys) == 0:
		return nil, unknown("the Secret has no key", "wait until the operator has made one"), nil
	}
	return keys, nil, nil
}
