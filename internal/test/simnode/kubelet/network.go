package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"wmco/internal/hostsim/simulation"
)

// defaultContainerdConfig is where containerd reads its configuration without --config.
const defaultContainerdConfig = `C:\Program Files\containerd\config.toml`

// containerdConfig returns the path of containerd's configuration.
func (k *kubelet) containerdConfig(ctx context.Context) string {
	services, err := k.Host.Services(ctx, []string{containerd})
	if err != nil {
		return defaultContainerdConfig
	}
	argv := simulation.SplitCommandLine(services[0].CommandLine)
	for i, arg := range argv {
		value, ok := strings.CutPrefix(arg, "--config=")
		switch {
		case ok:
			return value
		case arg == "--config" && i+1 < len(argv):
			return argv[i+1]
		}
	}
	return defaultContainerdConfig
}

// subnetIn reads the subnet of a configuration of win-overlay. One that is no JSON is refused, as libcni does.
func (k *kubelet) subnetIn(path string) (string, error) {
	text, err := k.Host.ReadFile(path)
	if err != nil {
		return "", err
	}
	var conf struct {
		IPAM struct {
			Subnet string `json:"subnet"`
		} `json:"ipam"`
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return conf.IPAM.Subnet, nil
}

// podIP returns the n-th address of the pod network: the first two are its own.
func (k *kubelet) podIP(ctx context.Context, n int) (string, error) {
	subnet, err := k.podSubnet(ctx)
	if err != nil {
		return "", err
	}
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return "", err
	}
	a := prefix.Masked().Addr()
	for range n%200 + 3 {
		a = a.Next()
	}
	return a.String(), nil
}
