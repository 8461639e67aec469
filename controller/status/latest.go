package status

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Latest is what a controller has said last of one condition, for another one that repeats it elsewhere. The zero value is a condition of
// which nothing is known.
type Latest struct{ text atomic.Pointer[string] }

// NoteCondition notes the condition.
func (l *Latest) NoteCondition(c metav1.Condition) {
	text := ""
	if c.Status == metav1.ConditionFalse {
		text = c.Message
	}
	l.text.Store(&text)
}

// ProblemMessage returns the message of a condition that is false, empty for any other one.
func (l *Latest) ProblemMessage() string {
	if text := l.text.Load(); text != nil {
		return *text
	}
	return ""
}
