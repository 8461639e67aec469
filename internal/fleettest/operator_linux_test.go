package fleettest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/applier/remote"
	remotessh "wmco/applier/remote/ssh"
	"wmco/controller"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/payload/store"
)

// operatorUser is the user of the operator's service account.
const operatorUser = "system:serviceaccount:" + gather.OperatorNamespace + ":windows-machine-config-operator"

// version is what the operator writes on a Node that has joined.
const version = "fleettest"

// operate runs the operator until f.stop or the end of the test. Like a Deployment, it starts one that has ended by itself.
func (f *fleet) operate(t *testing.T, reach func(*hosts.Login) *hosts.Hosts) {
	t.Helper()
	config := rest.CopyConfig(f.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	executables, err := store.Open(payloadFolder(t))
	must(t, err)
	o := controller.Options{
		Config: config, Version: version, Payload: executables.Set(), HealthAddress: "0", MetricsAddress: "0", LeaderElection: true, SkipNameValidation: true,
		Hosts: reach, Log: logr.FromSlogHandler(logs().Handler()).WithName("operator"),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := controller.Run(ctx, o); ctx.Err() == nil {
				f.ended.Add(1)
				logs().Warn("the operator ended", "error", err)
				time.Sleep(time.Second) // as a kubelet waits, only shorter
			}
		}
	})
	f.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
}

// overSSH reaches the machines under the addresses of their Machines.
func (f *fleet) overSSH(t *testing.T) func(*hosts.Login) *hosts.Hosts {
	t.Helper()
	program, err := remote.FileProgram(programs.node)
	must(t, err)
	at := map[string]remote.Target{}
	for _, m := range f.machines {
		at[m.address] = m.target()
	}
	return func(login *hosts.Login) *hosts.Hosts {
		dialer := remotessh.Dialer{Limits: remotessh.DefaultLimits(), Pins: login, Signers: login.Signers}
		o := hosts.Options{Program: program}
		o.Transports.Kept = moved{remotessh.NewTransport(dialer), at}
		dialer.Limits.Kept = 0
		o.Transports.Fresh = moved{remotessh.NewTransport(dialer), at}
		return hosts.New(o)
	}
}

// moved reaches SSH servers that are at another port, and have other accounts, than those of Machines.
type moved struct {
	remote.Transport
	at map[string]remote.Target
}

func (m moved) Connect(ctx context.Context, t remote.Target) error {
	return m.Transport.Connect(ctx, m.at[t.Host()])
}

func (m moved) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	return m.Transport.Run(ctx, m.at[t.Host()], c)
}

func (m moved) Transfer(ctx context.Context, t remote.Target, do func(remote.Files) error) error {
	return m.Transport.Transfer(ctx, m.at[t.Host()], do)
}

// renders is how often the operator has compared the cluster with what should be published.
func renders(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "publish" {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

// rest waits until the operator has seen all that was written, and has nothing to write itself. A watched object is changed twice in a
// way that no bundle depends on: the second time, the operator begins after the first change.
func (f *fleet) rest(t *testing.T) {
	t.Helper()
	eventually(t, "an operator at rest", func() bool {
		before := f.bundles(t)
		for range 2 {
			seen := renders(t)
			must(t, f.Patch(t.Context(), object("config.openshift.io/v1", "Proxy", "", "cluster"), client.RawPatch(types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano()))))
			eventually(t, "a comparison by the operator", func() bool { return renders(t) > seen })
		}
		same := maps.Equal(before, f.bundles(t))
		return same && f.isSettled(t)
	})
}
