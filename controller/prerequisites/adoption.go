package prerequisites

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base/conditions"
	"wmco/controller/windowsnode/nodelist"
	"wmco/controller/windowsnode/record"
	"wmco/report/fleet"
)

// NodesAdopted is the type of the condition that no node of another operator waits for adoption.
const NodesAdopted = "NodesAdopted"

// adoptionCondition says which nodes wait for adoption. Nothing is done to them but that their certificates are approved.
func adoptionCondition(ctx context.Context, nodes *nodelist.Cache, r client.Reader, records record.Set) (metav1.Condition, error) {
	list, err := nodes.ListCached(ctx, r)
	if err != nil {
		return metav1.Condition{}, err
	}
	var names []string
	for _, n := range list {
		if _, known := records.RecordOfNode(n.Name); !known && published.WaitsForAdoption(n.Annotations) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return conditions.AsExpected(NodesAdopted), nil
	}
	slices.Sort(names)
	return metav1.Condition{
		Type: NodesAdopted, Status: metav1.ConditionFalse, Reason: fleet.ReasonWaitingForAdoption,
		Message: published.Shorten(fmt.Sprintf("%s of another operator, which keep what they have: %s; fix: adopt each with wmco apply --host, see docs/takeover.md", bundle.Count(len(names), "node"), strings.Join(names, ", "))),
	}, nil
}
