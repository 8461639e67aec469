package configure

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/render"
)

// TestNoHostJoinsWithAChangeThatIsHeld: a change that nodes do not get before it is confirmed is not what a new host gets.
func TestNoHostJoinsWithAChangeThatIsHeld(t *testing.T) {
	const held = "Waiting NodeImageUnreachable: no host joins now: this change is not confirmed yet: a mirror hides an image; " +
		"fix: allow the source; or confirm it as in the condition InputsConfirmed"
	holds := func(why string, err error) func(context.Context, *desired.Hosts) (string, error) {
		return func(context.Context, *desired.Hosts) (string, error) { return why, err }
	}
	for name, tt := range map[string]struct {
		held func(context.Context, *desired.Hosts) (string, error)
		want string
		err  error
	}{
		"it is not asked":   {nil, registering, nil},
		"nothing is held":   {holds("", nil), registering, nil},
		"it waits":          {holds("it waits", nil), held, nil},
		"that is not known": {holds("", errAPIServer), "", errAPIServer},
	} {
		s := newScene(t)
		s.inputs.Findings = bundle.Findings{{
			Severity: bundle.SeverityWarning, Reason: string(published.InputUnreachableImages), Message: "a mirror hides an image", Fix: "allow the source",
		}}
		s.joiner.Checks.Held = tt.held
		p, err := s.joiner.JoinHost(t.Context(), Ref{Address: hostA})
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, described(p)); err == nil && diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if changed := len(s.network.at[hostA].did) > 0; changed != (tt.want == registering) {
			t.Errorf("%s: the host was changed: %t", name, changed)
		}
	}
}

// TestATrustedCAIsReadWhereThereIsAProxy, and only there.
func TestATrustedCAIsReadWhereThereIsAProxy(t *testing.T) {
	for name, proxy := range map[string]bool{"with a proxy": true, "without": false} {
		s := newScene(t)
		s.addConfigMap(render.TrustedCAConfigMap, map[string]string{"a": "b"})
		if proxy {
			s.inputs.Cluster.Proxy.HTTP = bundle.NewSecret("http://proxy")
		}
		_, trusted, err := s.joiner.Checks.JudgeCluster(t.Context(), s.inputs)
		must(t, err)
		if read := trusted.ConfigMap.Data["a"] == "b"; read != proxy || trusted.Proxy != proxy {
			t.Errorf("%s: %+v", name, trusted)
		}
		s.fails["get "+render.TrustedCAConfigMap] = errAPIServer
		if _, _, err := s.joiner.Checks.JudgeCluster(t.Context(), s.inputs); errors.Is(err, errAPIServer) != proxy {
			t.Errorf("%s: %v", name, err)
		}
	}
}
