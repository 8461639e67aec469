package hosts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/controller/windowsnode/record"
)

// between is a client with which something else happens after the pins were read, and before they are written.
type between struct {
	client.Client
	happens func()
}

func (b between) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	b.happens()
	return b.Client.Patch(ctx, o, p, options...)
}

// inTheSameConfigMap returns another host whose record is in the ConfigMap of this one's.
func inTheSameConfigMap(t remote.Target) remote.Target {
	for i := 0; ; i++ {
		other := entryAt(fmt.Sprintf("10.0.1.%d:22", i))
		if record.ConfigMapName(record.ID(other.ID)) == record.ConfigMapName(record.ID(t.ID)) {
			return other
		}
	}
}

// TestAnotherOperatorPinsFirst: the key that was pinned since the pins were read stays, and this connection is refused.
func TestAnotherOperatorPinsFirst(t *testing.T) {
	other := newLogin(t)
	if err := other.Pin(t.Context(), inTheSameConfigMap(entryAt("10.0.0.1:22")), hostKey(t, 9)); err != nil { // the ConfigMap exists
		t.Fatal(err)
	}
	first := sync.OnceFunc(func() {
		if err := other.Pin(t.Context(), entryAt("10.0.0.1:22"), hostKey(t, 1)); err != nil {
			t.Error(err)
		}
	})
	l := loginTo(between{other.Client, first})
	if err := l.Pin(t.Context(), entryAt("10.0.0.1:22"), hostKey(t, 2)); !errors.Is(err, ErrPinnedMeanwhile) {
		t.Errorf("error %v, want %v", err, ErrPinnedMeanwhile)
	}
	if got := pinned(t, l, "10.0.0.1:22"); got != EncodeKey(hostKey(t, 1)) {
		t.Errorf("the key that the other operator has pinned was replaced by %s", got)
	}
}
