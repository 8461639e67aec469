package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// FuzzOf: a Node has a row, whatever its kubelet has written on it.
func FuzzOf(f *testing.F) {
	const desired = `{"schema":2,"bundle":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}`
	for _, state := range published.States() {
		f.Add(`{"schema":1,"state":"`+string(state)+`"}`, desired, `{"schema":1}`)
	}
	f.Fuzz(func(t *testing.T, report, desired, rollout string) {
		node := windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{
			published.ReportAnnotation: report, published.DesiredAnnotation: desired, published.RolloutAnnotation: rollout,
		}}})
		row := Of(node, windowsnode.SilenceByKubelet)
		if row.State == "" || len(row.Message) > 4*published.MaxMessage {
			t.Errorf("state %q, a message of %d bytes", row.State, len(row.Message))
		}
	})
}
