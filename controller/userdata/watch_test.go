package userdata

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/keys"
)

// secretsServer serves no Secret, and then those that it is given. Requests for Secrets are noted.
type secretsServer struct {
	asked chan string
	added chan *corev1.Secret
}

// ServeHTTP implements http.Handler.
func (s secretsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/secrets") {
		http.NotFound(w, r)
		return
	}
	s.asked <- r.URL.Path + " " + r.URL.Query().Get("fieldSelector")
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = fmt.Fprint(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"}}`)
		return
	}
	send := func(kind string, secret *corev1.Secret) {
		secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": secret})
		_ = http.NewResponseController(w).Flush()
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		send("BOOKMARK", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case secret := <-s.added:
			send("ADDED", secret)
		}
	}
}

// receive waits until there is a report. It fails where the manager has ended, or after a minute, as nothing is reported then.
func receive(t *testing.T, done chan struct{}, ended chan error) {
	t.Helper()
	select {
	case <-done:
	case err := <-ended:
		t.Fatalf("the manager has ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the Secrets are not compared")
	}
}

// TestThePrivateKeyAloneIsWatched: at the start the Secrets are written without it having been seen, and again when it is.
func TestThePrivateKeyAloneIsWatched(t *testing.T) {
	log.SetLogger(logr.Discard())
	o := newOperator(t)
	s := secretsServer{make(chan string, 100), make(chan *corev1.Secret)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	done := make(chan struct{}, 100)
	o.Say = func(context.Context, []metav1.Condition) error { done <- struct{}{}; return nil }

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: server.URL}
	m, err := manager.New(config, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	must(t, err)
	kinds := base.NewKinds(mapper, m.GetAPIReader(), base.NewRefusedWatches(), logr.Discard())
	all, err := base.NewManager(m, nil, base.NewRetries(clock.RealClock{}), kinds, nil)
	must(t, err)
	must(t, o.SetupWithManager(all))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- all.Start(ctx) }()
	receive(t, done, ended)
	s.added <- privateKey(t)
	receive(t, done, ended)
	stop()
	must(t, <-ended)
	want := "/api/v1/namespaces/" + gather.OperatorNamespace + "/secrets metadata.name=" + keys.SecretName
	for len(s.asked) > 0 {
		if got := <-s.asked; got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
}
