package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func TestWhoHoldsTheLockOfTheExistingOperator(t *testing.T) {
	lock := func(owners ...metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: predecessorLock, OwnerReferences: owners}}
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "theirs", UID: "1"}
	pod := func(uid types.UID, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "theirs", UID: uid}, Status: corev1.PodStatus{Phase: phase}}
	}
	another := pod("2", corev1.PodRunning)
	for name, tt := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"no lock":                         {nil, ""},
		"a lock without an owner":         {[]runtime.Object{lock()}, ""},
		"a lock whose Pod is gone":        {[]runtime.Object{lock(owner)}, ""},
		"a lock whose Pod runs":           {[]runtime.Object{lock(owner), pod("1", corev1.PodRunning)}, "theirs"},
		"a lock whose Pod starts":         {[]runtime.Object{lock(owner), pod("1", corev1.PodPending)}, "theirs"},
		"a lock whose Pod was evicted":    {[]runtime.Object{lock(owner), pod("1", corev1.PodFailed)}, ""},
		"another Pod with the name of it": {[]runtime.Object{lock(owner), another}, ""},
	} {
		got, err := findPredecessor(t.Context(), fake.NewClientset(tt.objects...), "n")
		if err != nil || got != tt.want {
			t.Errorf("%s: held by %q, want %q: %v", name, got, tt.want, err)
		}
	}
}

// TestWhatTheAPIServerRefusesAtTheStartIsSaid as what it is: it has nothing to do with the existing operator.
func TestWhatTheAPIServerRefusesAtTheStartIsSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		want   string
	}{
		"credentials":              {http.StatusUnauthorized, "the API server does not accept the operator's credentials (401); fix: "},
		"rights":                   {http.StatusForbidden, "the operator lacks a right (403); fix: apply deploy/rbac"},
		"anything, for it is sick": {http.StatusInternalServerError, "looking for the existing operator: "},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) }))
		_, err := New(t.Context(), Options{Config: &rest.Config{Host: server.URL}, HealthAddress: "0", Log: logr.Discard()})
		server.Close()
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "to end") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
