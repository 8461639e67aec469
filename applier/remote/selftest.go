package remote

import (
	"context"
	"encoding/json"
	"time"

	"wmco/applier/selftest/result"
)

// selfTestLimit is for all clauses, of which one may take five minutes.
const selfTestLimit = time.Hour

// SelfTest tests on the host whether its Windows does what the agent relies on. It uses names of its own only. OnNode
// tests a host that is a node, which is refused otherwise.
func (a *Agent) SelfTest(ctx context.Context, o SelfTestOptions) (result.Result, error) {
	words := []string{wordSelfTest, "-o", "json"}
	if o.OnNode {
		words = append(words, "--on-node")
	}
	var out answer
	failed := a.runChecked(ctx, ask{words: words, works: true, changes: true, stdout: &out, limit: selfTestLimit, waits: selfTestLimit})
	if len(out.data) == 0 && failed != nil {
		return result.Result{}, failed
	}
	var r result.Result
	if err := json.Unmarshal(out.data, &r); err != nil {
		return r, a.badAnswer(wordSelfTest, out.data, err)
	}
	return r, unlessStatus(failed)
}

// SelfTestOptions are how a host is tested.
type SelfTestOptions struct {
	// OnNode tests a host that is a node.
	OnNode bool
}
