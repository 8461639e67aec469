package base

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countingMapper counts what it is asked for.
type countingMapper struct {
	meta.RESTMapper
	asked int
	err   error
}

func (c *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeRoot}, c.err
}

// TestMappingsOfKubernetesItselfAreKept: those of other groups may change while the operator runs.
func TestMappingsOfKubernetesItselfAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		kind schema.GroupVersionKind
		want int
	}{
		"Node":    {NodeKind(), 2}, // the first answer is an error
		"Machine": {MachineKind(), 4},
	} {
		mapper := &countingMapper{err: errors.New("no answer")}
		s := &knownScopes{RESTMapper: mapper}
		if _, err := s.RESTMapping(tt.kind.GroupKind(), tt.kind.Version); !errors.Is(err, mapper.err) {
			t.Errorf("%s: %v", name, err)
		}
		mapper.err = nil
		for range 3 {
			if m, err := s.RESTMapping(tt.kind.GroupKind(), tt.kind.Version); err != nil || m.GroupVersionKind != tt.kind {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
		}
		if mapper.asked != tt.want {
			t.Errorf("%s: asked %d times, want %d", name, mapper.asked, tt.want)
		}
	}
}
