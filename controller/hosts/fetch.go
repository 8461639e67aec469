package hosts

import (
	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

// fetchFor returns how a host fetches the executables of a bundle, by the list of the inputs; nil where it does not.
func (w Wish) fetchFor(m bundle.Manifest) *remote.Fetch {
	if w.Fetch == nil {
		return nil
	}
	f := *w.Fetch
	f.Order = func(missing []protocol.Missing) ([]byte, error) {
		order, ok := w.Inputs.FetchOrder(m.PayloadDigests())
		if !ok {
			return nil, nil
		}
		for _, c := range missing {
			order.Lacking = append(order.Lacking, c.Digest)
		}
		return order.Encode()
	}
	return &f
}
