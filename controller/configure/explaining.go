package configure

import (
	"context"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/preflight"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
)

// mostExplained is how many findings a Progress has.
const mostExplained = 3

// explainFailure adds what the host lacks to the progress of one that does not join. A host that gives no answer leaves it as it is.
func (h Host) explainFailure(ctx context.Context, w hosts.Wish, p Progress) Progress {
	q := desired.Question(h.Wanted.Cluster, h.Node)
	answer, err := h.Hosts.AskPreflight(ctx, w.Target, w.Check, q)
	if err != nil {
		h.Log.V(1).Info("asking a host that does not join what it lacks", "host", h.ID(), "error", err)
		return p
	}
	return withFindings(p, preflight.Findings(q, answer))
}

// withFindings adds the findings that may explain why a host does not join: errors, and warnings where there are none. What is only worth
// knowing explains nothing.
func withFindings(p Progress, findings bundle.Findings) Progress {
	likely := findings.Of(bundle.SeverityError)
	if len(likely) == 0 {
		likely = findings.Of(bundle.SeverityWarning)
	}
	if len(likely) == 0 {
		return p
	}
	var texts []string
	for _, f := range likely[:min(mostExplained, len(likely))] {
		texts = append(texts, fmt.Sprintf("%s: %s", f.Reason, f.Message))
	}
	if rest := len(likely) - len(texts); rest > 0 {
		texts = append(texts, fmt.Sprintf("%d more, which wmco preflight prints", rest))
	}
	p.Message += "; the host lacks: " + strings.Join(texts, "; ")
	p.Fix = likely[0].Fix
	return p
}
