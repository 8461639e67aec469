package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"wmco/bundle/published"
	"wmco/internal/test/testenv/manifests"
)

// fieldManager is the name under which objects are applied.
const fieldManager = "demo"

func connectCluster() (client.Client, error) {
	c, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	return manifests.NewClient(c)
}

// applyFiles applies objects with their status, and prints what has become of each.
func applyFiles(ctx context.Context, out io.Writer, files []string) error {
	c, err := connectCluster()
	if err != nil {
		return err
	}
	list, err := manifests.Read(files...)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := c.Apply(
			ctx, client.ApplyConfigurationFromUnstructured(m.DeepCopy()), client.FieldOwner(fieldManager),
			client.ForceOwnership,
		); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		if m.Object["status"] != nil {
			if err := c.Status().Apply(
				ctx, client.ApplyConfigurationFromUnstructured(m.Unstructured), client.FieldOwner(fieldManager),
				client.ForceOwnership,
			); err != nil {
				return fmt.Errorf("the status of %s: %w", m, err)
			}
		}
		fmt.Fprintf(out, "%s/%s applied\n", strings.ToLower(m.GetKind()), m.GetName())
	}
	return nil
}

// printNodes prints what kubectl get nodes does, and the version of the operator, which a node gets when it has joined.
func printNodes(ctx context.Context, out io.Writer) error {
	c, err := connectCluster()
	if err != nil {
		return err
	}
	var list corev1.NodeList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tADDRESS\tKUBELET\tJOINED BY")
	for _, n := range list.Items {
		joined := "-"
		if version := n.Annotations[published.VersionAnnotation]; version != "" && n.Annotations[published.JoiningAnnotation] == "" {
			joined = version
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Name, statusOfNode(n), addressOf(n), n.Status.NodeInfo.KubeletVersion, joined)
	}
	return w.Flush()
}

// statusOfNode is as kubectl writes it.
func statusOfNode(n corev1.Node) string {
	text := "NotReady"
	if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		text = "Ready"
	}
	if n.Spec.Unschedulable {
		text += ",SchedulingDisabled"
	}
	return text
}

func addressOf(n corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return "-"
}

// printEvents prints the events about an object, the oldest first.
func printEvents(ctx context.Context, out io.Writer, object string) error {
	kind, name, _ := strings.Cut(object, "/")
	c, err := connectCluster()
	if err != nil {
		return err
	}
	var list eventsv1.EventList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return at(a).Compare(at(b).Time) })
	for _, e := range list.Items {
		if strings.EqualFold(e.Regarding.Kind, kind) && e.Regarding.Name == name {
			fmt.Fprintf(out, "%s  %s  %s\n", e.Type, e.Reason, e.Note)
		}
	}
	return nil
}

// at is when an event was first seen.
func at(e eventsv1.Event) metav1.Time {
	return cmp.Or(metav1.Time{Time: e.EventTime.Time}, e.CreationTimestamp)
}
