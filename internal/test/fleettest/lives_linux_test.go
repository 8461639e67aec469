package fleettest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"wmco/controller"
	"wmco/internal/test/observer"
	"wmco/internal/test/testenv"
)

// live starts an operator without leader election: it believes that it leads.
func (f *fleet) live(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(f.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	ctx, cancel := context.WithCancel(context.Background())
	o := controller.Options{Config: config, Version: version, HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true, Environment: f.environment, Log: logr.FromSlogHandler(logs().Handler()).WithName("operator")}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // a Deployment restarts one that has ended
			if err := controller.Run(ctx, o); ctx.Err() == nil {
				logs().Warn("the operator ended", "error", err)
				time.Sleep(time.Second)
			}
		}
	}()
	before := f.stop
	f.stop = sync.OnceFunc(func() { before(); cancel(); <-ended })
}

// await waits as long as nodes go on: a fleet of any size may take its time.
func (f *fleet) await(t *testing.T, o *observer.Observer, what string, done func() bool) {
	t.Helper()
	for ok := false; !ok; {
		_, before := o.Progress()
		if err := testenv.Eventually(t.Context(), what, func() bool {
			_, moves := o.Progress()
			ok = done()
			return ok || moves != before
		}); err != nil {
			t.Fatalf("%v\n%s%s", err, o, &recent)
		}
	}
}
