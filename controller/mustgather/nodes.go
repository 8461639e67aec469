package mustgather

import (
	"context"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout"
)

// agentLogs are the logs of the node agent, below C:\var\log, which the kubelet serves (kubelet, enableSystemLogHandler).
var agentLogs = []string{"wicd/windows-instance-config-daemon.exe.INFO"}

// logLines is how much of the end of the log of a container is kept.
const logLines = "50000"

// layer keeps a part of a layer.
func (c *collection) layer(s corev1.Secret) {
	label := s.Labels[published.LayerLabel]
	if label == "" {
		return
	}
	if c.layers[label] == nil {
		c.layers[label] = map[string][]byte{}
	}
	c.layers[label][s.Name] = s.Data[published.SecretKey]
}

// open returns a layer without its contents.
func (c *collection) open(l published.Layer) ofLayer {
	if l.Parts == 0 && len(l.Inline) == 0 {
		l.Parts = len(c.layers[l.Label()])
	}
	var parts [][]byte
	for _, name := range l.Names() {
		parts = append(parts, c.layers[l.Label()][name])
	}
	opened, err := l.Open(parts)
	if err != nil {
		return ofLayer{Digest: l.Digest, Missing: "its Secrets are not there or cannot be read"}
	}
	return ofLayer{Digest: l.Digest, Layer: &opened}
}

// manifest is a bundle without contents.
type manifest struct {
	Bundle    bundle.Digest `json:"bundle"`
	MaxImpact bundle.Impact `json:"maxImpact,omitempty"`
	Cluster   ofLayer       `json:"cluster"`
	Node      ofLayer       `json:"node"`
}

// node writes what stands on a Node in readable form, and its logs.
func (c *collection) node(ctx context.Context, n corev1.Node) error {
	dir := path.Join("nodes", n.Name)
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	if err != nil {
		c.miss("Node %s, desired bundle: %s", n.Name, whyNot(n, published.DesiredAnnotation))
	} else if err := c.json(path.Join(dir, "desired.json"), manifest{d.Bundle, d.MaxImpact, c.open(d.Cluster), c.open(d.Node)}); err != nil {
		return err
	}
	if err := c.report(dir, n, d); err != nil {
		return err
	}
	if state, err := rollout.DecodeState(n.Annotations[published.RolloutAnnotation]); err == nil && n.Annotations[published.RolloutAnnotation] != "" {
		if err := c.json(path.Join(dir, "rollout.json"), state); err != nil {
			return err
		}
	}
	for _, name := range agentLogs {
		if err := c.log(ctx, path.Join(dir, "logs", name), fmt.Sprintf("/api/v1/nodes/%s/proxy/logs/%s", n.Name, name), nil); err != nil {
			return err
		}
	}
	return nil
}

func whyNot(n corev1.Node, annotation string) string {
	if n.Annotations[annotation] == "" {
		return "it has no annotation " + annotation
	}
	return "the annotation " + annotation + " cannot be read"
}

// report writes what the node agent says, and the bundle that it has.
func (c *collection) report(dir string, n corev1.Node, d published.Desired) error {
	r, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	if err != nil {
		c.miss("Node %s, report and applied bundle: %s", n.Name, whyNot(n, published.ReportAnnotation))
		return nil //nolint:nilerr // it is listed as missing
	}
	if err := c.json(path.Join(dir, "report.json"), r); err != nil {
		return err
	}
	if len(r.Layers) != 2 {
		c.miss("Node %s, applied bundle: the node agent has not reported its layers", n.Name)
		return nil
	}
	applied := manifest{Bundle: r.Applied, Cluster: c.open(published.Layer{Digest: r.Layers[0]}), Node: c.open(published.Layer{Digest: r.Layers[1]})}
	if d.Node.Digest == r.Layers[1] {
		applied.Node = c.open(d.Node)
	}
	return c.json(path.Join(dir, "applied.json"), applied)
}

// podLogs writes the logs of the containers of a Pod, where `oc adm inspect` has them.
func (c *collection) podLogs(ctx context.Context, p corev1.Pod) error {
	for _, container := range p.Spec.Containers {
		for _, previous := range []bool{false, true} {
			file := map[bool]string{false: "current.log", true: "previous.log"}[previous]
			if previous && !restarted(p, container.Name) {
				continue
			}
			name := path.Join("namespaces", p.Namespace, "pods", p.Name, container.Name, container.Name, "logs", file)
			query := map[string]string{"container": container.Name, "previous": fmt.Sprint(previous), "tailLines": logLines}
			if err := c.log(ctx, name, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log", p.Namespace, p.Name), query); err != nil {
				return err
			}
		}
	}
	return nil
}

func restarted(p corev1.Pod, container string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.RestartCount > 0
	})
}

// log writes what a path of the API server gives.
func (c *collection) log(ctx context.Context, name, from string, query map[string]string) error {
	limit := max(leastLog, min(logLimit, int64(allLogs/max(1, len(c.nodes)))))
	text, err := c.Logs(ctx, from, query, limit)
	if err != nil {
		c.miss("%s: %v", name, err)
		return nil // it is listed as missing
	}
	c.mutex.Lock()
	c.summary.Logs++
	c.mutex.Unlock()
	return c.file(name, []byte(mask(string(text))))
}
