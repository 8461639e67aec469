package machine

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestCountsThatCannotBeReadAreAnError: nothing is counted or forgotten while the API server fails.
func TestCountsThatCannotBeReadAreAnError(t *testing.T) {
	fails := errors.New("the API server refuses")
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fails
		},
	})
	r := Replacements{Live: c, Client: c, Namespace: "n"}
	_, err := r.countReplacements(t.Context(), "set")
	for name, err := range map[string]error{"counting": err, "adding": r.noteReplacement(t.Context(), "set", replaced{1, "uid"}), "forgetting": r.resetReplacements(t.Context(), "set")} {
		if !errors.Is(err, fails) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
