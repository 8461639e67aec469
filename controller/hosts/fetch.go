package hosts

import (
	"context"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

// Fetch is how a host gets executables from the operator's image.
type Fetch struct {
	// Begin is called before it fetches: an error has it come again later. End is called after it.
	Begin func(context.Context) (end func(), err error)
	// Failed is told why it still lacks some, in the words of the host. An error forbids to send them.
	Failed func(why string) error
}

// remoteFetch returns how a host fetches the executables of a bundle; nil where it does not.
func (w Wish) remoteFetch(m bundle.Manifest) *remote.Fetch {
	if w.Fetch == nil {
		return nil
	}
	return &remote.Fetch{Begin: w.Fetch.Begin, Failed: w.Fetch.Failed, Order: func(missing []protocol.Missing) ([]byte, error) {
		order, ok := w.Inputs.FetchOrder(m.PayloadDigests())
		if !ok {
			return nil, nil
		}
		for _, c := range missing {
			order.Lacking = append(order.Lacking, c.Digest)
		}
		return order.Encode()
	}}
}
