package prerequisites

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// TestWhatIsAskedForIsNotAdvised: who has asked for an adoption, or set that all are adopted, is not told to do so.
func TestWhatIsAskedForIsNotAdvised(t *testing.T) {
	const one, all, asked = "fix: wmco adopt NODE", "the setting adoption: Rollout", "adoption requested, not started yet: "
	for _, c := range []struct {
		name     string
		adoption render.AdoptionMode
		annotate []string
		has, not []string
	}{
		{"nothing is asked for", render.AdoptionManual, nil, []string{"2 nodes of the existing operator", "win-a, win-b", one, all}, []string{asked}},
		{"one is asked for", render.AdoptionManual, []string{"win-b"}, []string{"2 nodes of the existing operator", asked + "win-b (wmco status", one, all}, nil},
		{"both are asked for", render.AdoptionManual, []string{"win-a", "win-b"}, []string{asked + "win-a, win-b (wmco status"}, []string{one, all}},
		{"the settings ask for all", render.AdoptionRollout, nil, []string{asked + "win-a, win-b (wmco status"}, []string{one, all}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			for _, name := range []string{"win-a", "win-b"} {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: windowsnode.Windows}, Annotations: map[string]string{published.VersionAnnotation: "11.0.0"}}}
				for _, a := range c.annotate {
					if a == name {
						n.Annotations[published.AdoptAnnotation] = published.AdoptTrue
					}
				}
				b.WithObjects(n)
			}
			got, err := adoptionCondition(t.Context(), nil, b.Build(), adoptionInputs{isWanted: func(annotations map[string]string) bool {
				return fleet.IsAdoptionWanted(render.Settings{Adoption: c.adoption}, annotations)
			}})
			if err != nil || got.Status != metav1.ConditionFalse || got.Reason != fleet.ReasonWaitingForAdoption {
				t.Fatalf("%v, %+v", err, got)
			}
			for _, text := range c.has {
				if !strings.Contains(got.Message, text) {
					t.Errorf("it lacks %q: %s", text, got.Message)
				}
			}
			for _, text := range c.not {
				if strings.Contains(got.Message, text) {
					t.Errorf("it has %q: %s", text, got.Message)
				}
			}
		})
	}
}
