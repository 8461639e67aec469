package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"wmco/bundle"
	"wmco/bundle/published"
)

// reporters report each bundle that a Node is told of as applied, and say so in an Event, with the permissions of the node. They stand for node agents,
// fetch nothing and watch no Node of their own: thousands of agents need more processors than a test has, and lose their connections then, and what the
// operator does depends on the annotations of the Nodes alone.
type reporters struct {
	t       testing.TB
	config  *rest.Config
	facts   map[string]bundle.Facts
	changed chan *metav1.PartialObjectMetadata

	mu sync.Mutex
	// clients are those of the nodes, about the bundles that were reported last.
	clients map[string]corev1client.CoreV1Interface
	about   map[string]bundle.Digest
}

// reportWorkers is how many reports are written at the same time.
const reportWorkers = 16

// startReporters returns what reports for Nodes, which are handed to see.
func startReporters(ctx context.Context, t testing.TB, facts map[string]bundle.Facts, running *sync.WaitGroup) *reporters {
	r := &reporters{t: t, config: rest.CopyConfig(cluster.Config(t)), facts: facts, changed: make(chan *metav1.PartialObjectMetadata, 16*len(facts)), clients: map[string]corev1client.CoreV1Interface{}, about: map[string]bundle.Digest{}}
	r.config.QPS, r.config.UserAgent = -1, "wmco-node"
	for range reportWorkers {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case node := <-r.changed:
					if err := r.answer(ctx, node); err != nil && ctx.Err() == nil {
						t.Errorf("reporting for %s: %v", node.Name, err)
					}
				}
			}
		})
	}
	return r
}

// see has it reported what a Node is told.
func (r *reporters) see(node *metav1.PartialObjectMetadata) { r.changed <- node }

func (r *reporters) answer(ctx context.Context, node *metav1.PartialObjectMetadata) error {
	var d published.Desired
	if text := node.Annotations[published.DesiredAnnotation]; text != "" {
		var err error
		if d, err = published.DecodeDesired(text); err != nil {
			return err
		}
	}
	r.mu.Lock()
	before, known := r.about[node.Name]
	r.about[node.Name] = d.Bundle
	r.mu.Unlock()
	if known && before == d.Bundle {
		return nil
	}
	c, err := r.clientOf(node.Name)
	if err != nil {
		return err
	}
	facts := r.facts[node.Name]
	facts = facts.InReportForm(nil)
	report := published.Report{State: published.StateUnpublished, Program: "reporter", Features: published.Features(), Facts: &facts}
	if d.Bundle != "" {
		report.State, report.Desired, report.Applied, report.Layers = published.StateApplied, d.Bundle, d.Bundle, []bundle.Digest{d.Cluster.Digest, d.Node.Digest}
	}
	if err := writeReport(ctx, c, node.Name, report); err != nil || d.Bundle == "" {
		return err
	}
	return writeEvent(ctx, c, node.Name, "bundle "+d.Bundle.Short()+" is applied")
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
