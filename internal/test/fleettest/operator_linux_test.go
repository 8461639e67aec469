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

// operate runs the operator until f.stop or the end of the test. Like a Deployment, it restarts one that has ended.
func (f *fleet) operate(t *testing.T, reach func(*hosts.Login) *hosts.Hosts) {
	t.Helper()
	config := rest.CopyConfig(f.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	executables, err := store.Open(payloadFolder(t))
	must(t, err)
	o := controller.Options{
		Config: config, Version: version, Payload: executables.Set(), HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true,
		LeaderElection: true, Lease: controller.Lease{Duration: 20 * time.Second, Renew: 12 * time.Second, Retry: 2 * time.Second},
		Hosts: reach, Silence: f.silence(), Log: logr.FromSlogHandler(logs().Handler()).WithName("operator"),
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

// reached are the hosts that the operator reaches over SSH: under the addresses of their Machines, although their SSH servers are at other
// ports and have other accounts.
type reached struct {
	at map[string]remote.Target
	mu sync.Mutex
	// asked is how often each was asked for something.
	asked map[string]int
}

func (f *fleet) reached() *reached {
	r := &reached{at: map[string]remote.Target{}, asked: map[string]int{}}
	for _, m := range f.machines {
		r.at[m.address] = remote.Target{User: m.server.User, Address: m.server.Address}
	}
	return r
}

// count returns how often a machine was asked.
func (r *reached) count(m *machine) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[m.address]
}

func (r *reached) target(t remote.Target) remote.Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[t.Host()]++
	at := r.at[t.Host()]
	at.ID = t.ID
	return at
}

// hosts is for controller.Options.
func (r *reached) hosts(t *testing.T) func(*hosts.Login) *hosts.Hosts {
	t.Helper()
	program, err := remote.FileProgram(programs.Node)
	must(t, err)
	return func(login *hosts.Login) *hosts.Hosts {
		dialer := remotessh.Dialer{Limits: remotessh.DefaultLimits(), Pins: login, Signers: login.Signers, OnLogin: login.NoteLogin}
		o := hosts.Options{Program: program}
		o.Transports.Kept = moved{remotessh.NewTransport(dialer), r}
		dialer.Limits.Kept = 0
		o.Transports.Fresh = moved{remotessh.NewTransport(dialer), r}
		return hosts.New(o)
	}
}

// moved is a transport to where hosts really are.
type moved struct {
	remote.Transport
	*reached
}

func (m moved) Connect(ctx context.Context, t remote.Target) error {
	return m.Transport.Connect(ctx, m.target(t))
}

func (m moved) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	return m.Transport.Run(ctx, m.target(t), c)
}

func (m moved) Transfer(ctx context.Context, t remote.Target, do func(remote.Files) error) error {
	return m.Transport.Transfer(ctx, m.target(t), do)
}

// renders is how often the operator has begun to render the bundles of all nodes.
func renders(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() == "wmco_renders_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// rendered has the operator render twice: a watched object is changed in a way that no bundle depends on. What the operator does after the
// first change is done when it renders again.
func (f *fleet) rendered(t *testing.T) {
	t.Helper()
	for range 2 {
		seen := renders(t)
		must(t, f.Patch(t.Context(), object("config.openshift.io/v1", "Proxy", "", "cluster"), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano()))))
		eventually(t, "a render by the operator", func() bool { return renders(t) > seen })
	}
}

// rest waits until the operator has seen all that was written, and has nothing to write itself.
func (f *fleet) rest(t *testing.T) {
	t.Helper()
	eventually(t, "an operator at rest", func() bool {
		before := f.bundles(t)
		f.rendered(t)
		same := maps.Equal(before, f.bundles(t))
		return same && f.isSettled(t)
	})
}
