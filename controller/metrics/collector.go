package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// Collector computes the state of the cluster's Windows nodes. It keeps nothing between scrapes.
type Collector struct {
	// Nodes is a cache of Windows Nodes, unstructured; Decoded are those that were decoded.
	Nodes   client.Reader
	Decoded *nodelist.Cache
	// Live reads the WindowsNodesStatus, which nothing caches.
	Live      client.Reader
	Namespace string
	// Unjoined returns the number of hosts that were kept from joining when they were last tried, by reason.
	Unjoined func() map[string]int
	Now      func() time.Time
	// Silence is what the operator has observed of the node agents.
	Silence windowsnode.Silence
}

// readLimit is for what one scrape reads. Prometheus waits ten seconds by default.
const readLimit = 5 * time.Second

// Labels.
const (
	labelNode    = "node"
	labelState   = "state"
	labelReason  = "reason"
	labelImpact  = "impact"
	labelPhase   = "phase"
	labelType    = "type"
	labelStatus  = "status"
	labelBacking = "backing"
	labelInput   = "input"
	labelKey     = "key"
	labelCause   = "cause"
	// labelDirection is "sent" or "received".
	labelDirection = "direction"
	labelVersion   = "version"
)

// Phases of a turn.
const (
	phaseDrain = "drain"
	phaseApply = "apply"
)

func newDescription(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	nodes = newDescription("wmco_nodes", "Number of Windows nodes in a state, as wmco status shows it.", labelState)
	state = newDescription("wmco_node_state",
		"1 for the state of a Windows node. The reason is the state that its agent reports.", labelNode,
		labelState, labelReason)
	since = newDescription("wmco_node_pending_since_timestamp_seconds",
		"When the update of a Windows node to its published bundle began. Absent for a node that has the bundle.", labelNode)
	oldest = newDescription("wmco_oldest_pending_change_seconds",
		"Age of the oldest unfinished change of a Windows node, 0 if every node has its published bundle.")
	drifted = newDescription("wmco_node_drift_repaired_entries",
		"Number of entries that had drifted on a Windows node and were restored since its bundle was applied.", labelNode)
	networkRestarts = newDescription("wmco_node_host_network_restarts",
		"Number of restarts of kube-proxy on a Windows node since its agent started, because the Host Network Service had crashed.", labelNode)
	imagesMissing = newDescription("wmco_node_pinned_images_missing",
		"Number of images of PinnedImageSets for Windows nodes that are not on a Windows node, as its agent reports.", labelNode)
	bootPending = newDescription("wmco_node_windows_reboot_pending",
		"1 while Windows itself needs a reboot on a node, by cause.", labelNode, labelReason)
	rolledBack = newDescription("wmco_node_rolled_back_changes",
		"Number of bundles that were rolled back on a Windows node, of those that its agent and the rollout remember.", labelNode)
	change = newDescription("wmco_node_last_change_seconds",
		"How long the last finished change of a Windows node took: until it was permitted, which is the drain, and "+
			"from then until its end.", labelNode, labelImpact, labelPhase)
	backed = newDescription("wmco_rolled_back_nodes",
		"Number of Windows nodes whose published bundle was rolled back, by cause.", labelCause)
	pulled = newDescription("wmco_node_pulled_bytes",
		"Number of bytes of layers that a Windows node has fetched from the API server for its bundle.", labelNode)
	refused = newDescription("wmco_refused_nodes",
		"Number of Windows nodes whose newest bundle is refused. They keep their published bundle, and also count in wmco_nodes.")
	condition = newDescription("wmco_condition", "1 for the status of a condition of the WindowsNodesStatus.", labelType,
		labelStatus, labelReason)
	unjoined = newDescription("wmco_unjoined_hosts",
		"Number of hosts that could not join at the last attempt.", labelReason)
	complete = newDescription("wmco_scrape_complete",
		"1 if everything that the gauges need could be read, otherwise 0.")
)

func allDescriptions() []*prometheus.Desc {
	return []*prometheus.Desc{nodes, state, since, oldest, drifted, networkRestarts, imagesMissing, bootPending,
		rolledBack, backed, pulled, change, refused, condition, unjoined, complete}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range allDescriptions() {
		to <- d
	}
}

// Collect implements prometheus.Collector. Unreadable objects are left out, and the last gauge shows it: the other
// metrics of the process are served nevertheless.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), readLimit)
	defer stop()
	whole := 1.0
	if list, err := c.Decoded.ListCached(ctx, c.Nodes); err == nil {
		c.collectFleet(to, list)
	} else {
		whole = 0
	}
	switch s, err := status.Read(ctx, c.Live, c.Namespace); {
	case err == nil:
		collectStatus(to, s)
	case !meta.IsNoMatchError(err): // a cluster without the definition has no conditions
		whole = 0
	}
	for reason, n := range c.Unjoined() {
		sendGauge(to, unjoined, n, reason)
	}
	sendGauge(to, complete, whole)
}

// sendGauge sends a value.
func sendGauge[N int | float64](to chan<- prometheus.Metric, d *prometheus.Desc, value N, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
}

// collectFleet sends what the Nodes say.
func (c *Collector) collectFleet(to chan<- prometheus.Metric, list []windowsnode.Node) {
	count, causes := map[nodestate.State]int{}, map[published.Cause]int{}
	now, first := c.Now(), c.Now()
	for _, n := range list {
		row := fleet.Of(n, c.Silence)
		turns := n.Rollout // zero if it cannot be read: the rollout reports that
		count[row.State]++
		sendGauge(to, state, 1, row.Node, string(row.State), row.Reason)
		sendGauge(to, drifted, row.Repaired, row.Node)
		sendGauge(to, networkRestarts, max(n.Report.NetworkRestarts, 0), row.Node)
		if n.Report.Images.Wanted > 0 {
			sendGauge(to, imagesMissing, n.Report.Images.CountMissing(), row.Node)
		}
		for _, reason := range windowsnode.PendingBoots(n.Report) {
			sendGauge(to, bootPending, 1, row.Node, string(reason))
		}
		sendGauge(to, pulled, row.Pulled, row.Node)
		if row.Reason == string(published.StateRolledBack) {
			causes[row.Cause.Known()]++
		}
		if at := pendingSince(row, turns); !at.IsZero() {
			sendGauge(to, since, float64(at.UnixMilli())/1000, row.Node)
			if at.Before(first) {
				first = at
			}
		}
		sendGauge(to, rolledBack, countRollbacks(row, turns), row.Node)
		lastChange(to, row.Node, turns)
	}
	for _, s := range nodestate.All() {
		// refused nodes are counted besides, and removals are hosts
		if s != nodestate.Refused && s != nodestate.Removing {
			sendGauge(to, nodes, count[s], string(s))
		}
	}
	for _, c := range published.Causes() {
		sendGauge(to, backed, causes[c], string(c))
	}
	sendGauge(to, oldest, now.Sub(first).Seconds())
}

// pendingSince returns since when a node is on its way to its published bundle; zero if it has that, or if that is not
// known.
func pendingSince(row fleet.Row, s windowsnode.RolloutState) time.Time {
	switch row.State {
	case nodestate.Updated, nodestate.Joining, nodestate.Removing, nodestate.Refused:
		return time.Time{}
	case nodestate.Stale, nodestate.Updating, nodestate.Waiting, nodestate.Degraded, nodestate.NotReporting:
	}
	switch {
	case row.Reason == fleet.ReasonWaitingForAdoption: // nothing is published for it
		return time.Time{}
	case row.Applied == row.Desired && row.Desired != "": // it does not report, and has its bundle
		return time.Time{}
	case s.Turn.Bundle == row.Desired && !s.Turn.Begun.IsZero():
		return s.Turn.Begun
	case row.State == nodestate.Stale:
		return time.Time{} // its condition is about the bundle before
	}
	return row.Since
}

// countRollbacks returns how many bundles did not work on a node. A node may write both annotations of its own Node, so
// the digests are counted and are no labels.
func countRollbacks(row fleet.Row, s windowsnode.RolloutState) int {
	all := map[bundle.Digest]bool{}
	if row.Reason == string(published.StateRolledBack) {
		all[row.Desired] = true
	}
	if s.Failed != "" {
		all[s.Failed] = true
	}
	for _, t := range s.Past {
		if t.Result == published.StateRolledBack {
			all[t.Bundle] = true
		}
	}
	return len(all)
}

// lastChange sends how long the last turn took whose end was noted.
func lastChange(to chan<- prometheus.Metric, node string, s windowsnode.RolloutState) {
	for _, t := range append([]windowsnode.Turn{s.Turn}, s.Past...) {
		if t.Ended.IsZero() || t.Permitted.Before(t.Begun) || t.Ended.Before(t.Permitted) ||
			t.Impact.Rank() > bundle.ImpactReboot.Rank() {
			continue
		}
		sendGauge(to, change, t.Permitted.Sub(t.Begun).Seconds(), node, string(t.Impact), phaseDrain)
		sendGauge(to, change, t.Ended.Sub(t.Permitted).Seconds(), node, string(t.Impact), phaseApply)
		return
	}
}

// collectStatus sends the metrics of the status.
func collectStatus(to chan<- prometheus.Metric, s status.Status) {
	for _, c := range s.Conditions {
		sendGauge(to, condition, 1, c.Type, string(c.Status), c.Reason)
	}
	if s.Nodes != nil {
		sendGauge(to, refused, s.Nodes.Refused)
	}
}
