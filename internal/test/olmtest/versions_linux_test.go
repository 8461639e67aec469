package olmtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVersionsThatOLMTakesOver: each version of the existing operator is installed in a namespace of its own and gets our catalog. OLM offers
// an upgrade, or reports that there is no later version.
func TestVersionsThatOLMTakesOver(t *testing.T) {
	w := newWorld(t)
	refused := []string{"10.17.2", "12.0.0"}
	at := func(version string) string { return "v" + strings.ReplaceAll(version, ".", "-") }
	for _, v := range existingVersions {
		w.subscribe(subscription{namespace: at(v), source: catalogExisting, channel: "v" + v, starting: nameOf(v), approval: manual})
	}
	for _, v := range existingVersions {
		w.approve(at(v), v)
	}
	for _, v := range existingVersions {
		w.awaitInstalled(at(v), v)
		w.follow(at(v), catalogFirst)
	}
	for _, v := range existingVersions {
		if !slices.Contains(refused, v) {
			w.await("an upgrade of "+v, func() bool { return w.plan(at(v), first, "RequiresApproval") != "" })
		}
	}
	time.Sleep(5 * time.Second)
	for _, v := range refused {
		if p := w.plan(at(v), first, "RequiresApproval"); p != "" {
			t.Errorf("OLM offers an upgrade of %s", v)
		}
		w.await(v+" is the latest known", func() bool {
			return w.text("Subscription", at(v), subscriptionName, "status", "state") == "AtLatestKnown" && w.text("Subscription", at(v), subscriptionName, "status", "installedCSV") == nameOf(v)
		})
	}
	for _, v := range existingVersions {
		must(t, client.IgnoreNotFound(w.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at(v)}})))
	}
	for _, v := range existingVersions {
		w.awaitGone("Namespace", "", at(v))
	}
	w.shell("oc delete clusterrole,clusterrolebinding " + agent + " system-wicd-nodes --ignore-not-found")
}
