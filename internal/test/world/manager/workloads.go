package manager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Workloads are the controllers of ReplicaSets and DaemonSets with a scheduler: a pod of a ReplicaSet comes to the node that has the fewest of them,
// of those that its node selector and its tolerations allow. Pods end whose owner or node is not there any longer.
type Workloads struct {
	// Every is the time between two looks.
	Every time.Duration
	Log   *slog.Logger
}

// Run works until the context ends.
func (w Workloads) Run(ctx context.Context, admin *rest.Config) error {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	for {
		if err := w.look(ctx, clients); err != nil && ctx.Err() == nil {
			w.Log.Warn("looking at pods", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.Every):
		}
	}
}

// workload is a ReplicaSet or a DaemonSet.
type workload struct {
	metav1.Object
	kind     string
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
	// replicas is how many pods there are; less than zero is one on each node.
	replicas int
}

// sight is what one look has seen.
type sight struct {
	workloads []workload
	pods      []corev1.Pod
	nodes     []corev1.Node
}

func readSight(ctx context.Context, clients kubernetes.Interface) (c sight, err error) {
	sets, err1 := clients.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	daemons, err2 := clients.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	pods, err3 := clients.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	nodes, err4 := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return c, err
	}
	for i, s := range sets.Items {
		c.workloads = append(c.workloads, workload{&sets.Items[i], "ReplicaSet", s.Spec.Selector, s.Spec.Template, int(*s.Spec.Replicas)})
	}
	for i, s := range daemons.Items {
		c.workloads = append(c.workloads, workload{&daemons.Items[i], "DaemonSet", s.Spec.Selector, s.Spec.Template, -1})
	}
	c.pods, c.nodes = pods.Items, nodes.Items
	return c, nil
}

func (w Workloads) look(ctx context.Context, clients kubernetes.Interface) error {
	c, err := readSight(ctx, clients)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range c.pods {
		if now := int64(0); c.isLost(p) { // no kubelet is left that would end it
			errs = append(errs, clients.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
		} else if owner := metav1.GetControllerOf(&p); owner != nil && p.DeletionTimestamp == nil && !slices.ContainsFunc(c.workloads, func(x workload) bool { return x.GetUID() == owner.UID }) {
			errs = append(errs, clients.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}))
		}
	}
	for _, x := range c.workloads {
		for _, p := range c.missingPods(x) {
			_, err := clients.CoreV1().Pods(p.Namespace).Create(ctx, &p, metav1.CreateOptions{})
			errs = append(errs, err)
		}
	}
	return errors.Join(slices.DeleteFunc(errs, apierrors.IsNotFound)...)
}

// isLost reports whether a pod is on a node that is not there any longer.
func (c sight) isLost(p corev1.Pod) bool {
	return p.Spec.NodeName != "" && !slices.ContainsFunc(c.nodes, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName })
}

// missingPods returns the pods that a workload lacks and that a node takes.
func (c sight) missingPods(x workload) (all []corev1.Pod) {
	selector, err := metav1.LabelSelectorAsSelector(x.selector)
	if err != nil {
		return nil
	}
	have, total := map[string]int{}, 0
	for _, p := range c.pods {
		if p.Namespace == x.GetNamespace() && selector.Matches(labels.Set(p.Labels)) && p.DeletionTimestamp == nil {
			have[p.Spec.NodeName]++
			total++
		}
	}
	var fit []string
	for _, n := range c.nodes {
		if x.runsOn(n) {
			fit = append(fit, n.Name)
		}
	}
	if x.replicas < 0 {
		for _, name := range fit {
			if have[name] == 0 {
				all = append(all, x.podOn(name))
			}
		}
		return all
	}
	for ; total < x.replicas && len(fit) > 0; total++ {
		name := slices.MinFunc(fit, func(a, b string) int { return cmp.Or(cmp.Compare(have[a], have[b]), cmp.Compare(a, b)) })
		have[name]++
		all = append(all, x.podOn(name))
	}
	return all
}

// runsOn reports whether a node takes pods of a workload. Those of a DaemonSet also run on a node that is cordoned, or not Ready.
func (x workload) runsOn(n corev1.Node) bool {
	spec := x.template.Spec
	if !labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(n.Labels)) || x.replicas >= 0 && (n.Spec.Unschedulable || !isReady(n)) {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !(x.replicas < 0 && t.Key == corev1.TaintNodeUnschedulable) &&
			!slices.ContainsFunc(spec.Tolerations, func(x corev1.Toleration) bool { return x.ToleratesTaint(klog.Background(), &t, false) })
	})
}

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (x workload) podOn(node string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: *x.template.ObjectMeta.DeepCopy(), Spec: *x.template.Spec.DeepCopy()}
	p.Namespace, p.GenerateName, p.Spec.NodeName = x.GetNamespace(), x.GetName()+"-", node
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: x.kind, Name: x.GetName(), UID: x.GetUID(), Controller: new(true)}}
	return p
}
