package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"wmco/bundle"
	"wmco/bundle/published"
)

// reporters report each bundle that a Node is told of as applied, and say so in an Event, with the permissions of the node. They stand for node agents,
// read no bundle and watch no Node of their own: thousands of agents need more processors than a test has, and lose their connections then, and what the
// operator does depends on the annotations of the Nodes alone.
type reporters struct {
	t      testing.TB
	config *rest.Config
	facts  map[string]bundle.Facts
	// progress returns how far a node is with executables that it fetches; nil is nodes that fetch none.
	progress func(node string) published.FetchProgress
	// due are the nodes that have something to report. None of them is reported for twice at the same time.
	due workqueue.TypedInterface[string]

	mu sync.Mutex
	// clients are those of the nodes, desired what each is told of, about the bundles that were reported last.
	clients map[string]corev1client.CoreV1Interface
	desired map[string]published.Desired
	about   map[string]bundle.Digest
}

// reportWorkers is how many reports are written at the same time.
const reportWorkers = 16

// startReporters returns what reports for Nodes, which are handed to see.
func startReporters(ctx context.Context, t testing.TB, facts map[string]bundle.Facts, running *sync.WaitGroup) *reporters {
	r := &reporters{
		t: t, config: rest.CopyConfig(cluster.Config(t)), facts: facts, due: workqueue.NewTyped[string](),
		clients: map[string]corev1client.CoreV1Interface{}, desired: map[string]published.Desired{}, about: map[string]bundle.Digest{},
	}
	r.config.QPS, r.config.UserAgent = -1, "wmco-node"
	context.AfterFunc(ctx, r.due.ShutDown)
	for range reportWorkers {
		running.Go(func() {
			for name, over := r.due.Get(); !over; name, over = r.due.Get() {
				if err := r.report(ctx, name); err != nil && ctx.Err() == nil {
					t.Errorf("reporting for %s: %v", name, err)
				}
				r.due.Done(name)
			}
		})
	}
	return r
}

// see has it reported what a Node is told.
func (r *reporters) see(node *metav1.PartialObjectMetadata) {
	var d published.Desired
	if text := node.Annotations[published.DesiredAnnotation]; text != "" {
		var err error
		if d, err = published.DecodeDesired(text); err != nil {
			r.t.Errorf("%s: %v", node.Name, err)
			return
		}
	}
	r.mu.Lock()
	before, known := r.desired[node.Name]
	r.desired[node.Name] = d
	r.mu.Unlock()
	if !known || before.Bundle != d.Bundle {
		r.due.Add(node.Name)
	}
}

// desiredBundle returns what a node is told of.
func (r *reporters) desiredBundle(node string) published.Desired {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.desired[node]
}

// report writes a report, and an Event about a bundle that was not reported before.
func (r *reporters) report(ctx context.Context, node string) error {
	c, err := r.clientOf(node)
	if err != nil {
		return err
	}
	d, facts := r.desiredBundle(node), r.facts[node]
	facts = facts.InReportForm(nil)
	report := published.Report{State: published.StateUnpublished, Program: "reporter", Features: published.Features(), Facts: &facts}
	if d.Bundle != "" {
		report.State, report.Desired, report.Applied, report.Layers = published.StateApplied, d.Bundle, d.Bundle, []bundle.Digest{d.Cluster.Digest, d.Node.Digest}
	}
	if r.progress != nil {
		report.Features, report.Fetch = slices.Sorted(slices.Values(append(report.Features, published.FeatureFetch))), r.progress(node)
	}
	if err := writeReport(ctx, c, node, report); err != nil || d.Bundle == "" {
		return err
	}
	r.mu.Lock()
	before := r.about[node]
	r.about[node] = d.Bundle
	r.mu.Unlock()
	if before == d.Bundle {
		return nil
	}
	return writeEvent(ctx, c, node, "bundle "+d.Bundle.Short()+" is applied")
}

// clientOf returns a client with the permissions of a node.
func (r *reporters) clientOf(node string) (corev1client.CoreV1Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.clients[node]; ok {
		return c, nil
	}
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	c, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r.clients[node] = c
	return c, nil
}

// writeReport is agent.APIServer.Report.
func writeReport(ctx context.Context, c corev1client.CoreV1Interface, node string, r published.Report) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	now := metav1.Now()
	condition := corev1.NodeCondition{Type: published.Condition, Status: corev1.ConditionFalse, Reason: string(r.State), LastHeartbeatTime: now, LastTransitionTime: now}
	if r.State == published.StateApplied {
		condition.Status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{published.ReportAnnotation: text}},
		"status":   map[string]any{"conditions": []corev1.NodeCondition{condition}},
	})
	if err != nil {
		return err
	}
	_, err = c.Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// writeEvent is agent.APIServer.Event.
func writeEvent(ctx context.Context, c corev1client.CoreV1Interface, node, message string) error {
	at := metav1.NewTime(time.Now())
	_, err := c.Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: node + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)},
		Type:           corev1.EventTypeNormal, Reason: "BundleApplied", Message: message, FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: bundle.AgentProgram, Host: node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("writing an Event: %w", err)
	}
	return nil
}
