package golden

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"wmco/render/preview"
	"wmco/render/review"
)

// TransitionFile is the name of the file that makes a folder a transition.
const TransitionFile = "transition.yaml"

// Transition is two states of one cluster, the difference of which is kept.
type Transition struct {
	Before Case `json:"before"`
	// Preview, in place of before, is a folder below the transition's that render --out wrote, such as one of an older
	// version of this program.
	Preview string `json:"preview,omitempty"`
	After   Case   `json:"after"`
	// Nodes are names or addresses; empty means every Windows machine.
	Nodes []string `json:"nodes,omitempty"`
}

// LoadTransition reads transition.yaml of a folder, strictly.
func LoadTransition(dir string) (Transition, error) {
	data, err := os.ReadFile(filepath.Join(dir, TransitionFile))
	if err != nil {
		return Transition{}, fmt.Errorf("reading transition: %w", err)
	}
	var t Transition
	if err := yaml.UnmarshalStrict(data, &t); err != nil {
		return Transition{}, fmt.Errorf("reading transition %q: %w", dir, err)
	}
	t.Before.Nodes, t.After.Nodes = t.Nodes, t.Nodes
	return t, nil
}

// Review renders both states and compares them.
func (t Transition) Review(ctx context.Context, dir string) (review.Review, error) {
	before, err := t.before(ctx, dir)
	if err != nil {
		return review.Review{}, fmt.Errorf("rendering the state before: %w", err)
	}
	after, err := t.After.nodes(ctx, dir)
	if err != nil {
		return review.Review{}, fmt.Errorf("rendering the state after: %w", err)
	}
	return review.Compare(before, after), nil
}

func (t Transition) before(ctx context.Context, dir string) ([]review.Node, error) {
	if t.Preview == "" {
		return t.Before.nodes(ctx, dir)
	}
	tree, err := ReadTree(filepath.Join(dir, t.Preview))
	if err != nil {
		return nil, err
	}
	return Previewed(tree)
}

// Previewed reads the nodes of a tree that render --out wrote; none where there is no preview.
func Previewed(tree map[string][]byte) ([]review.Node, error) {
	var nodes []review.Node
	roots := preview.Roots(tree)
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		b, err := preview.Read(roots[name])
		if err != nil {
			return nil, fmt.Errorf("reading the preview of %q: %w", name, err)
		}
		nodes = append(nodes, review.Node{Name: name, Bundle: b})
	}
	return nodes, nil
}

func (c Case) nodes(ctx context.Context, dir string) ([]review.Node, error) {
	r, err := c.Gather(ctx, dir)
	if err != nil {
		return nil, err
	}
	options, err := c.Options(ctx, dir)
	if err != nil {
		return nil, err
	}
	list, findings, err := c.Render(r, options)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", err, findings)
	}
	return Reviewed(list), nil
}
