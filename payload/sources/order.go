package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"wmco/bundle"
)

// Order is what a host without a node agent is told to fetch, over SSH. It holds credentials: it is sent on stdin, and
// never written to a file.
type Order struct {
	List List
	// Lacking are executables that the host lacks although the bundle that it has applied has them.
	Lacking []bundle.Digest
	Proxy   Proxy
	// TrustedCAs is the PEM text of the CAs that the host will trust beside its own.
	TrustedCAs string
}

// Proxy is the proxy of the cluster, which the host does not have yet. The URLs may hold passwords.
type Proxy struct {
	HTTP, HTTPS bundle.Secret
	NoProxy     string
}

// orderJSON is the JSON of an order.
type orderJSON struct {
	Schema     int             `json:"schema"`
	List       json.RawMessage `json:"list"`
	Lacking    []bundle.Digest `json:"lacking,omitempty"`
	HTTP       string          `json:"httpProxy,omitempty"`
	HTTPS      string          `json:"httpsProxy,omitempty"`
	NoProxy    string          `json:"noProxy,omitempty"`
	TrustedCAs string          `json:"trustedCAs,omitempty"`
}

const (
	// maxOrder is the size of the largest order in bytes: trusted CAs are the most of it.
	maxOrder  = maxFile + 4<<20
	whatOrder = "order to fetch executables"
)

// Encode returns the order with its credentials in clear.
func (o Order) Encode() ([]byte, error) {
	list, err := o.List.Encode()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(orderJSON{schema, list, o.Lacking, o.Proxy.HTTP.Reveal(), o.Proxy.HTTPS.Reveal(), o.Proxy.NoProxy, o.TrustedCAs})
	if err != nil {
		return nil, errors.New("encoding the " + whatOrder) // the error could have a part of it
	}
	return data, nil
}

// DecodeOrder reads what Encode wrote; a newer schema is a *bundle.SchemaError. Errors have no secrets.
func DecodeOrder(from io.Reader) (Order, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxOrder+1))
	if err != nil {
		return Order{}, fmt.Errorf("reading the %s: %w", whatOrder, err)
	}
	if len(data) > maxOrder {
		return Order{}, fmt.Errorf("%w: %s", bundle.ErrTooLarge, whatOrder)
	}
	if err := bundle.CheckSchema(data, whatOrder, schema); err != nil {
		return Order{}, err
	}
	var j orderJSON
	if json.Unmarshal(data, &j) != nil { // the error can quote a value
		return Order{}, errors.New("reading the " + whatOrder + ": it is not JSON of the right form")
	}
	list, err := Decode(j.List)
	if err != nil {
		return Order{}, err
	}
	return Order{
		List: list, Lacking: j.Lacking, TrustedCAs: j.TrustedCAs,
		Proxy: Proxy{bundle.NewSecret(j.HTTP), bundle.NewSecret(j.HTTPS), j.NoProxy},
	}, nil
}
