package controller

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/deploy/admission"
	"wmco/internal/test/testenv"
)

// heard are the warnings that an API server sends.
type heard struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

// take returns the warnings since the last call, a line for each.
func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := strings.Join(h.list, "\n")
	h.list = nil
	return text
}

// checkWarnings: what oc apply prints, by a dry run and for real, for each kind of change. The webhook is reached by its URL; in a cluster a Service
// leads to it.
func checkWarnings(t *testing.T, r *running) {
	text, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.certificate("first.example.com")
	for file, data := range map[string][]byte{"tls.crt": text, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(r.certificates, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var warned heard
	config := rest.CopyConfig(cluster.Config(t))
	config.WarningHandler = &warned
	user := testenv.NewClient(t, config)
	hook := admission.WarningWebhook(gather.OperatorNamespace)
	hook.Webhooks[0].ClientConfig.Service, hook.Webhooks[0].ClientConfig.URL = nil, new("https://"+r.warnings+admission.WarningsPath)
	if err := r.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), hook) })

	// While the certificate is not known to the API server, as without a Secret, everything is applied without a warning.
	first := r.desired("")
	quay := mirrorSet("warned", "quay.io")
	if err := user.Create(t.Context(), quay.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got := warned.take(); got != "" {
		t.Errorf("without a certificate: %q", got)
	}
	hook.Webhooks[0].ClientConfig.CABundle = text
	if err := r.Update(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	if err := r.eventually("a warning", func() bool {
		return user.Create(t.Context(), quay.DeepCopy(), client.DryRunAll) == nil && warned.take() == "1 Windows node changes without a restart"
	}); err != nil {
		t.Fatal(err)
	}

	settings := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}, Data: map[string]string{"config.yaml": text}}
	}
	for _, step := range []struct {
		name   string
		object client.Object
		// want are lines that begin so.
		want []string
	}{
		{"a mirror set that changes no node", mirrorSet("same", "base.example.com"), nil},
		{"a change that would stop all pods", never(), []string{
			"1 Windows node changes without a restart; 1 new finding: no pod can start without the pause image", "the change is held until you confirm it", "fix: allow or mirror its registry",
		}},
		{"settings that restart a service", settings("kubelet: {maxPods: 77}"), []string{"1 Windows node changes: restarts kubelet"}},
		{"settings that are refused", settings("nonsense: 1"), []string{"the inputs of Windows nodes would be refused, and all nodes keep their bundles", "error: ConfigMap/"}},
		{"another ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "other"}}, nil},
		{"a Secret that is no pull secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "other"}}, nil},
	} {
		begun := time.Now()
		if err := user.Create(t.Context(), step.object, client.DryRunAll); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := warned.take()
		t.Logf("%s, %s: %s", step.name, time.Since(begun).Round(time.Millisecond), got)
		lines := strings.Split(got, "\n")
		if got == "" {
			lines = nil
		}
		for i, want := range step.want {
			if want != "" && (i >= len(lines) || !strings.HasPrefix(lines[i], want)) {
				t.Errorf("%s: line %d of %q, want %q", step.name, i, got, want)
			}
		}
		if len(lines) > len(step.want) {
			t.Errorf("%s: %q", step.name, got)
		}
	}
	checkPullSecretWarning(t, r, user, &warned)
	proxy := base.NewObject(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"})
	if err := r.Get(t.Context(), client.ObjectKey{Name: "cluster"}, proxy); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(proxy.Object, "http://proxy.example.com:3128", "spec", "httpProxy"); err != nil {
		t.Fatal(err)
	}
	if err := user.Update(t.Context(), proxy, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got := warned.take(); !strings.HasPrefix(got, "Windows nodes restart their services when the network operator has written the status") {
		t.Errorf("a Proxy: %q", got)
	}
	if now := r.desired(""); now.Bundle != first.Bundle {
		t.Errorf("a dry run has changed the bundle: %s, %s before", now.Bundle.Short(), first.Bundle.Short())
	}
}

// checkPullSecretWarning: no answer has anything of the secret.
func checkPullSecretWarning(t *testing.T, r *running, user client.Client, warned *heard) {
	t.Helper()
	var secret corev1.Secret
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "openshift-config", Name: "pull-secret"}, &secret); err != nil {
		t.Fatal(err)
	}
	const password = "hunter2secret"
	before := secret.Data[corev1.DockerConfigJsonKey]
	secret.Data[corev1.DockerConfigJsonKey] = bytes.Replace(before, []byte(`"auths":{`), []byte(`"auths":{"mirror.example.com":{"auth":"dXNlcjpodW50ZXIyc2VjcmV0"},`), 1)
	if bytes.Equal(before, secret.Data[corev1.DockerConfigJsonKey]) {
		secret.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"mirror.example.com":{"auth":"dXNlcjpodW50ZXIyc2VjcmV0"}}}`)
	}
	if err := user.Update(t.Context(), &secret, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	got := warned.take()
	if !strings.HasPrefix(got, "Windows nodes get credentials of this Secret") || strings.Contains(got, password) || strings.Contains(got, "dXNlcjpodW50") {
		t.Errorf("the pull secret: %q", got)
	}
}
