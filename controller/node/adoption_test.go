package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
)

// TestWhatIsPublishedDuringAComparisonIsComparedNext: the report is about the Node as it was judged.
func TestWhatIsPublishedDuringAComparisonIsComparedNext(t *testing.T) {
	judged := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{configure.VersionAnnotation: "1"}}}
	for name, tt := range map[string]struct {
		// published is the annotation of the Node when the report is written.
		published string
		compared  bool
	}{
		"nothing was published": {"", true},
		"a bundle":              {"a bundle", false},
	} {
		live := judged.DeepCopy()
		if tt.published != "" {
			live.Annotations[published.DesiredAnnotation] = tt.published
		}
		c := fake.NewClientBuilder().WithObjects(live).Build()
		now := time.Hour
		elapsed := func() time.Duration { return now }
		ad := &adopter{joiner: &configure.Joiner{Elapsed: elapsed, Client: c, Login: &hosts.Login{Live: c}, Unjoined: &configure.Unjoined{Elapsed: elapsed}}}
		if err := ad.writeReport(t.Context(), windowsnode.Decode(*judged.DeepCopy()), published.Report{State: published.StateApplying, Adopting: true}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		now += time.Second
		if seen := ad.compared.SeenFor("a", comparedBy(live.Annotations), elapsed()) > 0; seen != tt.compared {
			t.Errorf("%s: compared %t, want %t", name, seen, tt.compared)
		}
	}
}
