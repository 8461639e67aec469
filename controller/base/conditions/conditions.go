// Package conditions has helpers of conditions.
package conditions

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonAsExpected is the reason of a condition that is met, MessageAsExpected its message.
const (
	ReasonAsExpected  = "AsExpected"
	MessageAsExpected = "as expected"
)

// AsExpected returns a condition that is met.
func AsExpected(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: ReasonAsExpected,
		Message: MessageAsExpected}
}
