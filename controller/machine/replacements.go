package machine

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/configure"
)

// replacementsName is a ConfigMap of the operator's namespace: how many Machines of a MachineSet were replaced in a
// row, by its name.
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

// countReplacements is how many there were. A value that is no number counts as too many: a person edited it.
func (r Replacements) countReplacements(ctx context.Context, set string) (int, error) {
	cm, err := r.countsNotebook().ReadEntries(ctx)
	if err != nil {
		return 0, err
	}
	text, ok := cm.Data[set]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return replacementsInARow, nil //nolint:nilerr // see above
	}
	return n, nil
}

// addReplacement counts one more, or takes back one that was not made.
func (r Replacements) addReplacement(ctx context.Context, set string, more int) error {
	n, err := r.countReplacements(ctx, set)
	if err != nil {
		return err
	}
	if n += more; n <= 0 {
		return r.countsNotebook().ChangeEntry(ctx, set, nil)
	}
	return r.countsNotebook().ChangeEntry(ctx, set, strconv.Itoa(n))
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
