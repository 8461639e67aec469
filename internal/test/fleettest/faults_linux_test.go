package fleettest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
	"wmco/internal/test/seed"
)

// faultLasts is how long the API server has a bad day, at most: a rollout that ends before that ends it.
func faultLasts() time.Duration {
	if faults.Whole() {
		return 12 * time.Second
	}
	return 8 * time.Second
}

// checkFaults: for each bad day of the API server, a change that restarts services and a node that has to be drained and to boot begin in it, two nodes
// with WMCO_FAULTS=all. What is done is done once, and all is right soon after the end.
func (s *storm) checkFaults(t *testing.T) {
	s.configure(t, `{rollout: {settle: 0s, maxUnavailable: 3}}`, observer.Rules{Unavailable: intstr.FromInt32(3), Parallel: 20})
	s.network = faults.New(seed.New(t).Uint64())
	t.Cleanup(func() { s.network = nil; s.renew(t) })
	s.renew(t)
	s.deploy(t, 2)
	s.rests(t)
	for i, fault := range faults.OfRollouts() {
		t.Run(string(fault), func(t *testing.T) { s.checkFault(t, fault, fmt.Sprintf("http://fault-%d.example.com:3128", i)) })
	}
}

func (s *storm) checkFault(t *testing.T, fault faults.Fault, proxy string) {
	booting := []*machine{s.machines[3]}
	if faults.Whole() {
		booting = append(booting, s.machines[len(s.machines)-1])
	}
	starts := map[*machine]int{}
	for _, m := range s.machines {
		starts[m] = m.Starts()["kubelet"]
	}
	s.network.Set(fault)
	s.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "`+proxy+`", noProxy: ".cluster.local,.svc"}}`)
	b := s.boot(t, booting...)
	right := func() bool {
		for _, m := range s.machines {
			if m.Starts()["kubelet"] == starts[m] {
				return false
			}
		}
		return b.done()
	}
	for until := time.Now().Add(faultLasts()); time.Now().Before(until) && !right(); {
		time.Sleep(100 * time.Millisecond) // the fault goes on
	}
	hits := s.network.Set(faults.None)
	well := time.Now()
	s.await(t, s.o, "all nodes", right)
	t.Logf("%d requests were hit; all was right %.1f s after the end", hits, time.Since(well).Seconds())
	if hits == 0 {
		t.Error("no request was hit")
	}
	s.rests(t)
	b.check(t)
	for _, m := range s.machines {
		isRunWith("HTTP_PROXY="+proxy)(t, s.fleet, m)
		if again := m.Starts()["kubelet"] - starts[m]; !slices.Contains(booting, m) && again != 1 {
			t.Errorf("%s: the kubelet was started %d times", m.name, again)
		}
	}
}
