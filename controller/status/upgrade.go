package status

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Upgrade is what the rollout has found out last that OLM is told before it replaces the operator. The zero value knows
// nothing.
type Upgrade struct {
	kubelets atomic.Pointer[string]
	changing atomic.Pointer[map[string]bool]
}

// NoteKubelets notes the condition about kubelets that keep the cluster from its next update.
func (u *Upgrade) NoteKubelets(c metav1.Condition) {
	text := ""
	if c.Status == metav1.ConditionFalse {
		text = c.Message
	}
	u.kubelets.Store(&text)
}

// KubeletProblem returns the message of that condition where it is false, empty for any other one.
func (u *Upgrade) KubeletProblem() string {
	if text := u.kubelets.Load(); text != nil {
		return *text
	}
	return ""
}

// NoteChanging notes the nodes that the rollout is changing now: they have their turn, or the next step for them is
// due.
func (u *Upgrade) NoteChanging(nodes []string) {
	changing := map[string]bool{}
	for _, n := range nodes {
		changing[n] = true
	}
	u.changing.Store(&changing)
}

// IsChanging reports whether the rollout is changing a node, as far as it was noted.
func (u *Upgrade) IsChanging(node string) bool {
	changing := u.changing.Load()
	return changing != nil && (*changing)[node]
}
