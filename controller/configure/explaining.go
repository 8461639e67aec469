package configure

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/preflight"
)

const (
	// mostExplained is how many findings a Progress has, maxExplained how many bytes of each, because hosts write them.
	mostExplained, maxExplained = 3, 200
	// explainEvery is how often a host is asked for its findings while it is retried: it contacts API servers and
	// registries for that.
	explainEvery = 10 * time.Minute
)

// explanations are the last findings of hosts that do not join. The zero value is empty.
type explanations struct {
	mu  sync.Mutex
	all map[string]explanation
}

type explanation struct {
	asked    time.Duration
	findings bundle.Findings
}

// recentOf returns the findings of a host; false if it must be asked again. It drops those of other hosts that are as old.
func (e *explanations) recentOf(host string, now time.Duration) (bundle.Findings, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.all, func(_ string, x explanation) bool { return now-x.asked >= explainEvery })
	x, ok := e.all[host]
	return x.findings, ok
}

func (e *explanations) keepExplanation(host string, x explanation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]explanation{}
	}
	e.all[host] = x
}

// explainFailure adds the findings of a host that does not join to its progress. Without an answer of the host it adds
// nothing.
func (h Host) explainFailure(ctx context.Context, w hosts.Wish, p Progress) Progress {
	now := h.Elapsed()
	findings, known := h.explained.recentOf(h.recordID(), now)
	if known {
		return withFindings(p, findings)
	}
	q := desired.Question(h.Wanted.Cluster, h.Node)
	q.Node = true // its kubelet is the one that joining has brought
	answer, err := h.Hosts.AskPreflight(ctx, w.Target, w.Check, q)
	if err != nil {
		h.Log.V(1).Info("asking a host that does not join what it lacks", "host", h.ID(), "error", err)
	} else {
		findings = preflight.Findings(q, answer)
	}
	h.explained.keepExplanation(h.recordID(), explanation{now, findings})
	return withFindings(p, findings)
}

// withFindings adds the findings that may explain why a host does not join: errors, or warnings if there is no error. The
// fix of an error replaces the known one. The fix of a warning does not, because the warning may have another cause.
func withFindings(p Progress, findings bundle.Findings) Progress {
	likely := findings.Of(bundle.SeverityError)
	sure := len(likely) > 0
	if !sure {
		likely = findings.Of(bundle.SeverityWarning)
	}
	if len(likely) == 0 {
		return p
	}
	var texts []string
	for _, f := range likely[:min(mostExplained, len(likely))] {
		texts = append(texts, fmt.Sprintf("%s: %s", f.Reason, published.ShortenTo(f.Message, maxExplained)))
	}
	if rest := len(likely) - len(texts); rest > 0 {
		texts = append(texts, fmt.Sprintf("%d more, which wmco preflight prints", rest))
	}
	p.Message += "; the host lacks: " + strings.Join(texts, "; ")
	if sure || p.Fix == "" {
		p.Fix = likely[0].Fix
	}
	return p
}
