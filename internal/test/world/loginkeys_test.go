package world

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/memoryssh"
)

// setLoginKey gives operators a new key to log in with.
func (w *world) setLoginKey(t testing.TB) {
	t.Helper()
	key, private, err := memoryssh.NewKey()
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	w.mu.Lock()
	w.loginKey = key
	w.mu.Unlock()
	w.try(t, "the key to log in with", func() error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}}
		return w.Patch(w.ctx, secret, mergePatch(fmt.Sprintf(`{"data":{%q:%q}}`, keys.SecretKey, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block)))))
	})
}

// changeLoginKey exchanges the key to log in with. Nodes follow by themselves; on other hosts a person does it.
func (w *world) changeLoginKey(t *testing.T) {
	w.setLoginKey(t)
	for _, h := range w.allHosts() {
		if n := w.observer.Snapshot()[h.name]; n.Annotations[published.VersionAnnotation] == "" {
			w.authorize(t, h)
		}
	}
}

// authorize has a host accept the key of operators, and no other one.
func (w *world) authorize(t testing.TB, h *host) {
	t.Helper()
	must(t, h.Edit(w.ctx, func(s *simulation.State) {
		maps.DeleteFunc(s.Settings, func(_ string, x plan.Setting) bool { return x.Kind == bundle.KindAuthorizedKey })
	}))
	must(t, h.ssh.Authorize(w.loginKey.PublicKey()))
}

// authorizeLost is what a person does on the console of a host whose agent cannot follow, because its kubelet has no certificate any longer
// (docs/keys.md, A lost key).
func (w *world) authorizeLost(t testing.TB) {
	t.Helper()
	for _, h := range w.allHosts() {
		if isListed(h) && time.Since(h.disturbed) > time.Hour && !observer.IsReady(w.observer.Snapshot()[h.name]) && w.unlikeKeys(h) != "" {
			w.tell("(a person has %s accept the key)", h.name)
			w.authorize(t, h)
			w.disturbHost(h)
		}
	}
}

// unlikeKeys returns which keys a host accepts, if that is not the one of operators alone.
func (w *world) unlikeKeys(h *host) string {
	var keys []string
	err := h.Look(w.ctx, func(s *simulation.State) { keys = s.AuthorizedKeys() })
	if want := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(w.loginKey.PublicKey()))); err != nil || !slices.Equal(keys, []string{want}) {
		return fmt.Sprintf("%s accepts the keys %q, want %q (%v)", h.name, keys, want, err)
	}
	return ""
}
