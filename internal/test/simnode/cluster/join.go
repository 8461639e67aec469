package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/internal/test/simnode"
	"wmco/payload"
	"wmco/render"
)

const machineNamespace = "openshift-machine-api"

// AddMachine makes a Machine with an address, as machine-api does for a virtual machine that it has started.
func AddMachine(ctx context.Context, admin *rest.Config, name, address string) error {
	c, err := newClient(admin)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineNamespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machineNamespace, Name: name, Labels: map[string]string{"machine.openshift.io/os-id": "Windows"},
	}}
	if err := c.Create(ctx, m); err != nil {
		return err
	}
	phase := machinev1beta1.PhaseProvisioned
	m.Status.Phase = &phase
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	return c.Status().Update(ctx, m)
}

// newClient returns a client that knows the kinds of OpenShift that this package writes.
func newClient(admin *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1beta1.Install(scheme)); err != nil {
		return nil, err
	}
	return client.New(withoutWarnings(admin), client.Options{Scheme: scheme})
}

// Joiner applies to machines what `wmco apply --from cluster` does, without SSH and in this process: many at once.
type Joiner struct {
	Admin *rest.Config
	// Key makes the digests of secrets.
	Key bundle.Key
	// Pause is the time between two rounds of Join; zero is half a second.
	Pause time.Duration
}

// Apply renders the bundles of machines from the objects of the cluster as they are, and applies them. It returns the
// outcome of each, and all errors.
func (j Joiner) Apply(ctx context.Context, machines ...*simnode.Machine) ([]applier.Outcome, error) {
	outcomes := make([]applier.Outcome, len(machines))
	c, err := newClient(j.Admin)
	if err != nil {
		return outcomes, err
	}
	hosts, err := desired.ReadHosts(ctx, desired.Source{Objects: objects.NewClusterReader(c), Gather: gather.Options{Complete: true}, Key: j.Key})
	if err != nil {
		return outcomes, err
	}
	contents, err := desired.PayloadContents("")
	if err != nil {
		return outcomes, err
	}
	var errs []error
	for i, m := range machines {
		if outcomes[i], err = applyTo(ctx, hosts, contents, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name(), err))
		}
	}
	return outcomes, errors.Join(errs...)
}

func applyTo(ctx context.Context, hosts *desired.Hosts, contents *archive.Contents, m *simnode.Machine) (applier.Outcome, error) {
	facts, err := m.Facts(ctx)
	if err != nil {
		return applier.Outcome{}, err
	}
	if hosts.Findings.Refused() {
		return applier.Outcome{}, fmt.Errorf("the inputs are refused: %+v", hosts.Findings.Sorted()[0])
	}
	nodes, err := hosts.SelectByAddress(m.Addresses()[0])
	if err != nil {
		return applier.Outcome{}, err
	}
	n, found := desired.WithFacts(nodes[0], facts, m.Name())
	list, all, err := hosts.RenderBundles([]render.Node{n})
	if err != nil {
		return applier.Outcome{}, err
	}
	if found = append(found, all...); found.Refused() {
		return applier.Outcome{}, fmt.Errorf("the inputs are refused: %+v", found.Sorted()[0])
	}
	r, err := list[0].ArchiveRequest(contents)
	if err != nil {
		return applier.Outcome{}, err
	}
	// The inputs here have no signing keys. The node agent may have followed the operator by now, and have some.
	return m.Apply(ctx, r, applier.Options{LockWait: time.Minute, RemoveSigningKeys: true})
}

// Join applies until every Node is Ready and every machine has the whole of its bundle. Approve and Network must run.
func (j Joiner) Join(ctx context.Context, machines ...*simnode.Machine) error {
	c, err := newClient(j.Admin)
	if err != nil {
		return err
	}
	left := machines
	for {
		if _, err := j.Apply(ctx, left...); err != nil {
			return err
		}
		var rest []*simnode.Machine
		for _, m := range left {
			if ok, err := isJoined(ctx, c, m); err != nil {
				return err
			} else if !ok {
				rest = append(rest, m)
			}
		}
		if left = rest; len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("joining %d machines, %s among them: %w", len(left), left[0].Name(), ctx.Err())
		case <-time.After(max(j.Pause, 500*time.Millisecond)):
		}
	}
}

// isJoined reports whether the Node of a machine is Ready, and its last service runs: kube-proxy waits for the pod
// network.
func isJoined(ctx context.Context, c client.Client, m *simnode.Machine) (bool, error) {
	var n corev1.Node
	if err := c.Get(ctx, client.ObjectKey{Name: m.Name()}, &n); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if m.Starts()[payload.KubeProxy] == 0 {
		return false, nil
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
			return true, nil
		}
	}
	return false, nil
}
