package networks

import (
	"context"
	"time"

	"wmco/applier/winhost/wait"
)

// answerLimit is how long a call of the Host Networking Service may take.
const answerLimit = 30 * time.Second

// hostNetworks is the Host Networking Service.
type hostNetworks interface {
	networkService
	endpointService
}

// limited is a Host Networking Service whose calls are given up.
type limited struct {
	hns   hostNetworks
	calls *wait.Calls
}

func (l limited) listNetworks() ([]network, error) { return wait.Call(l.calls, l.hns.listNetworks) }

func (l limited) listEndpoints() ([]endpoint, error) { return wait.Call(l.calls, l.hns.listEndpoints) }

func (l limited) deleteNetwork(id string) error {
	return l.calls.Do(answerLimit, func() error { return l.hns.deleteNetwork(id) })
}

func (l limited) createEndpoint(name, network string) (id string, err error) {
	return wait.Call(l.calls, func() (string, error) { return l.hns.createEndpoint(name, network) })
}

// attachEndpoint waits for the address of the endpoint too.
func (l limited) attachEndpoint(ctx context.Context, endpoint string, compartment int) error {
	return l.calls.Do(attachLimit+answerLimit, func() error { return l.hns.attachEndpoint(ctx, endpoint, compartment) })
}

func (l limited) deleteEndpoint(id string) error {
	return l.calls.Do(answerLimit, func() error { return l.hns.deleteEndpoint(id) })
}

// attachLimit is the limit of the wait for the address of an attached endpoint: its adapter gets it later.
const attachLimit = 30 * time.Second
