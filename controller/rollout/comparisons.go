package rollout

import "time"

// Reports of nodes, and changes by others, are found by a comparison of all nodes with their wanted bundles.
// That costs some 25 microseconds of processor time for each node (docs/scale.md), so its pause grows with
// the fleet: comparisons take about one percent of one processor, however large the fleet is and however many nodes
// report. Up to 500 nodes the pause is no longer than that in which changes settle. A change of the inputs, such as a
// CA, a credential, a mirror set, or a Node that comes or goes, does not wait for it.
const (
	comparisonPausePerNode = 2 * time.Millisecond
	longestComparisonPause = 10 * time.Second
)

// ComparisonPause is the least time between two comparisons of so many nodes with their wanted bundles.
func ComparisonPause(nodes int) time.Duration {
	return min(time.Duration(nodes)*comparisonPausePerNode, longestComparisonPause)
}

// untilComparison returns how long it takes until nodes are compared again; 0 if that is now.
func (p *publisher) untilComparison() time.Duration {
	return max(p.compared.Add(ComparisonPause(p.comparedNodes)).Sub(p.now()), 0)
}
