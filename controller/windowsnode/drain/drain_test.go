package drain

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestPodsThatDoNotEndAreGivenUp after the time that the caller gives: a kubelet may leave them running for ever.
func TestPodsThatDoNotEndAreGivenUp(t *testing.T) {
	pod := func(name string, end time.Duration) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Finalizers: []string{"example.com/kept"}}}
		if end != 0 {
			p.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(end)))
		}
		return p
	}
	pods := fake.NewClientset(pod("ended-long-ago", -2*time.Hour), pod("ends", time.Minute), pod("ends-late", -time.Minute), pod("runs", 0))
	for giveUp, want := range map[time.Duration][]string{
		0: {"a/ended-long-ago", "a/ends", "a/ends-late", "a/runs"}, time.Hour: {"a/ends", "a/ends-late", "a/runs"},
	} {
		left, err := Drainer{Client: pods, GiveUp: giveUp}.RemainingPods(t.Context(), "win-a")
		if slices.Sort(left.Pods); err != nil || !slices.Equal(left.Pods, want) {
			t.Errorf("after %v: %q, %v, want %q", giveUp, left.Pods, err, want)
		}
	}
}

// TestWhichEvictionsAreDenied: those that are refused again until a person does something.
func TestWhichEvictionsAreDenied(t *testing.T) {
	for code, want := range map[int32]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusTeapot: true,
		http.StatusUnauthorized: false, http.StatusRequestTimeout: false, http.StatusConflict: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}}
		if got := isDenied(fmt.Errorf("evicting: %w", err)); got != want {
			t.Errorf("status %d: %t, want %t", code, got, want)
		}
	}
	if isDenied(errors.New("cut off")) {
		t.Error("an API server that does not answer denies nothing")
	}
}
