package mustgather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// What the node agent writes below C:\var\log, which the kubelet serves (kubelet, enableSystemLogHandler).
const (
	agentFolder = "wicd/"
	agentLog    = agentFolder + bundle.AgentService + ".exe.INFO"
	// ledgerCopy lists the managed entries of the host.
	ledgerCopy = agentFolder + bundle.LedgerCopy
)

// ledgerLimit is the largest copy of a ledger, in bytes: that of a full node is under 32 KiB.
const ledgerLimit = 256 << 10

// logLines is how much of the end of the log of a container is kept.
const logLines = "50000"

// addLayerPart keeps a part of a layer.
func (c *collection) addLayerPart(s corev1.Secret) {
	label := s.Labels[published.LayerLabel]
	if label == "" {
		return
	}
	if c.layers[label] == nil {
		c.layers[label] = map[string][]byte{}
	}
	c.layers[label][s.Name] = s.Data[published.SecretKey]
}

// openLayer returns a layer. Its contents, secrets among them, are not written: no encoding of a layer has them.
func (c *collection) openLayer(l published.Layer) ofLayer {
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

// writeNode writes the annotations of a Node in readable form, and its logs.
func (c *collection) writeNode(ctx context.Context, n windowsnode.Node) error {
	dir := path.Join("nodes", n.Name)
	var desired manifest
	if d := n.Desired; n.DesiredError != nil {
		c.addMissing("Node %s, desired bundle: %s", n.Name, whyNot(n, published.DesiredAnnotation))
	} else {
		desired = manifest{d.Bundle, d.MaxImpact, c.openLayer(d.Cluster), c.openLayer(d.Node)}
		if err := c.writeJSON(path.Join(dir, "desired.json"), desired); err != nil {
			return err
		}
	}
	if err := c.writeReport(dir, n, desired); err != nil {
		return err
	}
	if n.RolloutError == nil && n.Annotations[published.RolloutAnnotation] != "" {
		if err := c.writeJSON(path.Join(dir, "rollout.json"), n.Rollout); err != nil {
			return err
		}
	}
	if err := c.writeLedger(ctx, path.Join(dir, "ledger.json"), n.Name); err != nil {
		return err
	}
	return c.writeLog(ctx, path.Join(dir, "logs", agentLog), kubeletLogPath(n.Name, agentLog), nil)
}

// kubeletLogPath is the path at which the API server passes on what the kubelet of a node serves of its logs.
func kubeletLogPath(node, name string) string {
	return fmt.Sprintf("/api/v1/nodes/%s/proxy/logs/%s", node, name)
}

// writeLedger writes the copy of the ledger that the node agent keeps beside its logs.
func (c *collection) writeLedger(ctx context.Context, name, node string) error {
	text, err := c.Logs(ctx, kubeletLogPath(node, ledgerCopy), nil, ledgerLimit)
	if err == nil && !json.Valid(text) {
		err = errors.New("it is no JSON, or too large")
	}
	if err != nil {
		c.addMissing("%s: %v", name, err)
		return nil // it is listed as missing
	}
	return c.writeFile(name, []byte(bundle.MaskText(string(text))))
}

func whyNot(n windowsnode.Node, annotation string) string {
	if n.Annotations[annotation] == "" {
		return "it has no annotation " + annotation
	}
	return "the annotation " + annotation + " cannot be read"
}

// planned is the difference between the bundle that a node has and the one that it should have.
type planned struct {
	Applied bundle.Digest `json:"applied"`
	Desired bundle.Digest `json:"desired"`
	// MaxImpact is the highest impact that is allowed for the desired bundle; Impact is that of the changes.
	MaxImpact bundle.Impact  `json:"maxImpact"`
	Impact    bundle.Impact  `json:"impact"`
	Restarts  []string       `json:"restarts,omitempty"`
	Changes   bundle.Changes `json:"changes"`
}

// writePlan writes what the node agent has to do. Drift is not in it: the node agent alone sees that.
func (c *collection) writePlan(dir, node string, applied, desired manifest) error {
	has, known := applied.withContents()
	want, both := desired.withContents()
	if !known || !both {
		c.addMissing("Node %s, plan: a layer of the applied or of the desired bundle is missing", node)
		return nil
	}
	changes := bundle.Diff(has, want)
	if changes == nil {
		changes = bundle.Changes{}
	}
	return c.writeJSON(path.Join(dir, "plan.json"), planned{
		applied.Bundle, desired.Bundle, desired.MaxImpact, changes.Impact(), changes.Restarts(), changes,
	})
}

// withContents returns the bundle with its contents; false if a layer is missing, or if the layers, which a node
// reports, are those of another bundle.
func (m manifest) withContents() (bundle.Bundle, bool) {
	d, err := bundle.DigestLayers(m.Cluster.Digest, m.Node.Digest)
	if err != nil || d != m.Bundle || m.Cluster.Layer == nil || m.Node.Layer == nil {
		return bundle.Bundle{}, false
	}
	return bundle.Bundle{Cluster: *m.Cluster.Layer, Node: *m.Node.Layer}, true
}

// writeReport writes the report of the node agent, and the bundle that the node has.
func (c *collection) writeReport(dir string, n windowsnode.Node, desired manifest) error {
	if n.ReportError != nil {
		c.addMissing("Node %s, report and applied bundle: %s", n.Name, whyNot(n, published.ReportAnnotation))
		return nil //nolint:nilerr // it is listed as missing
	}
	r := n.Report
	if err := c.writeJSON(path.Join(dir, "report.json"), r); err != nil {
		return err
	}
	if len(r.Layers) != 2 {
		c.addMissing("Node %s, applied bundle: the node agent has not reported its layers", n.Name)
		return nil
	}
	applied := manifest{
		Bundle: r.Applied, Cluster: c.openLayer(published.Layer{Digest: r.Layers[0]}),
		Node: c.openLayer(published.Layer{Digest: r.Layers[1]}),
	}
	if n.Desired.Node.Digest == r.Layers[1] {
		applied.Node = c.openLayer(n.Desired.Node)
	}
	if err := c.writeJSON(path.Join(dir, "applied.json"), applied); err != nil || desired.Bundle == "" {
		return err
	}
	return c.writePlan(dir, n.Name, applied, desired)
}

// podLogs writes the logs of the containers of a Pod, where `oc adm inspect` has them.
func (c *collection) podLogs(ctx context.Context, p corev1.Pod) error {
	for _, container := range p.Spec.Containers {
		for _, previous := range []bool{false, true} {
			file := map[bool]string{false: "current.log", true: "previous.log"}[previous]
			if previous && !hasRestarted(p, container.Name) {
				continue
			}
			name := path.Join(ofNamespaces, p.Namespace, "pods", p.Name, container.Name, container.Name, "logs", file)
			query := map[string]string{"container": container.Name, "previous": fmt.Sprint(previous), "tailLines": logLines}
			if !c.Since.IsZero() {
				query["sinceTime"] = c.Since.UTC().Format(time.RFC3339)
			}
			if err := c.writeLog(
				ctx, name, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log", p.Namespace, p.Name), query,
			); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasRestarted(p corev1.Pod, container string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.RestartCount > 0
	})
}

// writeLog writes what a path of the API server gives.
func (c *collection) writeLog(ctx context.Context, name, from string, query map[string]string) error {
	limit := max(leastLog, min(logLimit, int64(allLogs/max(1, len(c.nodes)))))
	text, err := c.Logs(ctx, from, query, limit)
	if err != nil {
		c.addMissing("%s: %v", name, err)
		return nil // it is listed as missing
	}
	if int64(len(text)) == limit { // the end of a longer one begins within a line, which may lack the name of its secret
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	c.mutex.Lock()
	c.summary.Logs++
	c.mutex.Unlock()
	return c.writeFile(name, []byte(bundle.MaskLog(string(text))))
}
