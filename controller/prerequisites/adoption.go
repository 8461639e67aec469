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
	"wmco/controller/fleet"
	"wmco/controller/windowsnode/nodelist"
	"wmco/controller/windowsnode/record"
)

// NodesAdopted is the type of the condition that no node of another operator waits for adoption.
const NodesAdopted = "NodesAdopted"

// adoptionInputs are what the condition is made from: the records of hosts, and the CAs (PEM) that the cluster has for
// clients of kubelets and for its API server.
type adoptionInputs struct {
	records              record.Set
	clientCAs, serverCAs string
	// isWanted reports by the annotations of a Node whether its adoption is asked for.
	isWanted func(annotations map[string]string) bool
}

// maxWaiting is how many nodes that wait are named: the text has to fit with what to do.
const maxWaiting = 10

// adoptionCondition lists the nodes that wait for adoption, and those being adopted. Nothing is done to those that wait
// but that their certificates are approved.
func adoptionCondition(ctx context.Context, nodes *nodelist.Cache, r client.Reader,
	of adoptionInputs) (metav1.Condition, error) {
	list, err := nodes.ListCached(ctx, r)
	if err != nil {
		return metav1.Condition{}, err
	}
	var waiting, asked, adopting []string
	for _, n := range list {
		switch host, known := of.records.RecordOfNode(n.Name); {
		case known && host.Adopting:
			adopting = append(adopting, n.Name)
		case !known && n.WaitsForAdoption():
			waiting = append(waiting, n.Name)
			if of.isWanted(n.Annotations) {
				asked = append(asked, n.Name)
			}
		}
	}
	if len(waiting)+len(adopting) == 0 {
		return conditions.AsExpected(NodesAdopted), nil
	}
	var parts []string
	if len(waiting) > 0 {
		slices.Sort(waiting)
		parts = append(parts, fmt.Sprintf("%s of the existing operator, without changes until adopted, not even a rotated CA or "+
			"pull secret: %s", bundle.Count(len(waiting), "node"),
			firstNames(waiting))+waitingCAs(of.clientCAs, of.serverCAs))
	}
	if len(adopting) > 0 {
		slices.Sort(adopting)
		parts = append(parts, "being adopted: "+strings.Join(adopting, ", "))
	}
	text := strings.Join(parts, "; ")
	if len(asked) > 0 {
		slices.Sort(asked)
		text += "; adoption requested, not started yet: " + firstNames(asked) + " (wmco status shows the cause)"
	}
	if len(waiting) > len(asked) {
		text += "; fix: wmco adopt NODE, or the setting adoption: Rollout for all nodes (docs/takeover.md)"
	}
	return metav1.Condition{Type: NodesAdopted, Status: metav1.ConditionFalse, Reason: fleet.ReasonWaitingForAdoption,
		Message: published.Shorten(text)}, nil
}

// firstNames names the first nodes of a list.
func firstNames(names []string) string {
	return bundle.JoinFirst(names, maxWaiting, ", ", func(left int) string { return fmt.Sprintf(" and %d more", left) })
}
