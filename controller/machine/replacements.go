package machine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/configure"
)

// replacementsName is a ConfigMap of the operator's namespace: how many Machines of a MachineSet were replaced in a
// row, by its name, and the UID of the last one: "1 2f5c...".
const replacementsName = "windows-machine-replacements"

// Replacements count Machines that were replaced, until one of the same MachineSet joins.
type Replacements struct {
	Live      client.Reader
	Client    client.Client
	Namespace string
}

func (r Replacements) countsNotebook() configure.Notebook {
	return configure.Notebook{Live: r.Live, Client: r.Client, Namespace: r.Namespace, Name: replacementsName}
}

// replaced is how many Machines of a MachineSet were replaced in a row, and the UID of the object to delete for the last
// one, which may not have been deleted: the API server may have refused, or the operator may have ended before.
type replaced struct {
	count int
	last  types.UID
}

// isUndone reports whether the last one was not deleted: it is to be deleted now, or one of these Machines.
func (p replaced) isUndone(now client.Object, list []machinev1beta1.Machine) bool {
	return now.GetUID() == p.last || slices.ContainsFunc(list, func(m machinev1beta1.Machine) bool {
		return m.UID == p.last && m.DeletionTimestamp.IsZero()
	})
}

// countReplacements is how many were noted. A value that is no number counts as too many: a person edited it.
func (r Replacements) countReplacements(ctx context.Context, set string) (replaced, error) {
	cm, err := r.countsNotebook().ReadEntries(ctx)
	if err != nil {
		return replaced{}, err
	}
	text, ok := cm.Data[set]
	if !ok {
		return replaced{}, nil
	}
	number, last, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return replaced{count: replacementsInARow}, nil //nolint:nilerr // see above
	}
	return replaced{n, types.UID(last)}, nil
}

// noteReplacement notes one more.
func (r Replacements) noteReplacement(ctx context.Context, set string, p replaced) error {
	return r.countsNotebook().ChangeEntry(ctx, set, fmt.Sprintf("%d %s", p.count, p.last))
}

// resetReplacements forgets them.
func (r Replacements) resetReplacements(ctx context.Context, set string) error {
	cm, err := r.countsNotebook().ReadEntries(ctx)
	if err != nil {
		return err
	}
	if _, ok := cm.Data[set]; !ok {
		return nil
	}
	return r.countsNotebook().ChangeEntry(ctx, set, nil)
}
