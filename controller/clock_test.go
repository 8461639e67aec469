package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/internal/test/faults"
	"wmco/internal/test/testenv"
)

// testStep is by how much the clock goes on in each hundredth of a second of a wait.
const testStep = 100 * time.Millisecond

// eventually waits, and lets time pass for the operator.
func (r *running) eventually(what string, done func() bool) error {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	go faults.MoveOn(ctx, r.clock, testStep)
	return testenv.Eventually(ctx, what, done)
}

// Create, Update, Patch and Delete implement client.Writer.
func (r *running) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return cmp.Or(r.Client.Create(ctx, o, opts...), r.seen(ctx, o))
}

func (r *running) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return cmp.Or(r.Client.Update(ctx, o, opts...), r.seen(ctx, o))
}

func (r *running) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return cmp.Or(r.Client.Patch(ctx, o, patch, opts...), r.seen(ctx, o))
}

func (r *running) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return cmp.Or(r.Client.Delete(ctx, o, opts...), r.seen(ctx, o))
}

// seen waits until the operator's cache has an object as the API server has it, if it is one that the operator watches.
func (r *running) seen(ctx context.Context, o client.Object) error {
	kind, err := r.GroupVersionKindFor(o)
	if err != nil || !r.waits || !slices.ContainsFunc(gather.WantedObjects(gather.OperatorNamespace), func(w objects.Want) bool { return base.KindOf(w) == kind }) {
		return err
	}
	return testenv.Eventually(ctx, "the operator to see "+kind.Kind+" "+o.GetName(), func() bool {
		var versions [2]string
		for i, from := range []client.Reader{r.Client, r.operator.GetCache()} {
			var read client.Object = base.NewObject(kind)
			if kind == base.NodeKind() {
				read = &corev1.Node{}
			}
			if err := from.Get(ctx, client.ObjectKeyFromObject(o), read); client.IgnoreNotFound(err) != nil {
				return false
			}
			versions[i] = read.GetResourceVersion()
		}
		return versions[0] == versions[1]
	})
}
