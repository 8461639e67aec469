package winhost

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"wmco/bundle"
)

func TestProbeNetwork(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	web := bundle.Probe{Kind: bundle.ProbeHTTP, Target: server.URL}
	tcp := bundle.Probe{Kind: bundle.ProbeTCP, Target: server.Listener.Addr().String()}
	if err := probeNetwork(t.Context(), web); err != nil {
		t.Errorf("while it answers: %v", err)
	}
	for _, status = range []int{http.StatusNoContent, http.StatusFound, http.StatusInternalServerError} {
		if err := probeNetwork(t.Context(), web); err == nil {
			t.Errorf("status %d succeeds", status)
		}
	}
	if err := probeNetwork(t.Context(), tcp); err != nil {
		t.Errorf("while it listens: %v", err)
	}
	server.Close()
	for _, probe := range []bundle.Probe{web, tcp, {Kind: bundle.ProbeHTTP, Target: "::"}} {
		if err := probeNetwork(t.Context(), probe); err == nil {
			t.Errorf("%+v succeeds", probe)
		}
	}
}
