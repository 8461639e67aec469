package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
)

// checkCNI reads a network configuration as its three readers do: the library in containerd, the win-overlay plugin,
// and host-local, which assigns the addresses.
func checkCNI(_ context.Context, contents []byte, _ Options) error {
	plugin, err := libcni.NetworkPluginConfFromBytes(contents)
	if err != nil {
		return err
	}
	list, err := libcni.ConfListFromConf(plugin) //nolint:staticcheck // what containerd's go-cni does with a .conf file
	if err != nil {
		return err
	}
	var errs []error
	if err := utils.ValidateNetworkName(list.Name); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains(version.All.SupportedVersions(), plugin.Network.CNIVersion) {
		errs = append(errs, fmt.Errorf("cniVersion %q is not one of %v", plugin.Network.CNIVersion, version.All.SupportedVersions()))
	}
	if _, _, err := allocator.LoadIPAMConfig(contents, ""); err != nil {
		errs = append(errs, fmt.Errorf("host-local: %w", err))
	}
	return errors.Join(append(errs, checkWinOverlay(contents))...)
}

// winOverlay is the configuration of the plugin, whose own types are compiled for Windows only
// (github.com/containernetworking/plugins v1.9.1, plugins/main/windows/win-overlay and pkg/hns/netconf_windows.go).
type winOverlay struct {
	CNIVersion        string          `json:"cniVersion"`
	Name              string          `json:"name"`
	Type              string          `json:"type"`
	Capabilities      map[string]bool `json:"capabilities"`
	IPAM              json.RawMessage `json:"ipam"` // host-local reads it
	DNS               types.DNS       `json:"dns"`
	APIVersion        int             `json:"apiVersion"`
	Policies          []overlayPolicy `json:"policies"`
	LoopbackDSR       bool            `json:"loopbackDSR"`
	IPMasq            bool            `json:"ipMasq"`
	EndpointMacPrefix string          `json:"endpointMacPrefix"`
}

type overlayPolicy struct {
	Name  string        `json:"name"`
	Value endpointValue `json:"value"`
}

// endpointValue is an endpoint policy of version 2 of the Host Networking Service. The plugin silently drops one that
// it cannot decode.
type endpointValue struct {
	Type     string          `json:"Type"`
	Settings json.RawMessage `json:"Settings"`
}

// Settings of the endpoint policies, as in github.com/Microsoft/hcsshim/hcn; NeedEncap and DestinationPrefix are
// beside the exceptions of OutBoundNAT in the documented configurations of OVN's hybrid overlay.
type outboundNATSettings struct {
	VirtualIP         string
	Exceptions        []string
	ExceptionList     []string
	Destinations      []string
	DestinationPrefix string
	NeedEncap         bool
}

type sdnRouteSettings struct {
	DestinationPrefix string
	NextHop           string
	NeedEncap         bool
	ExceptionList     []string
}

type providerAddressSettings struct{ ProviderAddress string }

func checkWinOverlay(contents []byte) error {
	var c winOverlay
	if err := strictJSON(contents, &c); err != nil {
		return fmt.Errorf("win-overlay: %w", err)
	}
	var errs []error
	if c.Type != "win-overlay" {
		errs = append(errs, fmt.Errorf("type %q is not a pod network plugin of the payload", c.Type))
	}
	if c.APIVersion != 2 {
		errs = append(errs, fmt.Errorf("apiVersion %d: containerd's pods need 2", c.APIVersion))
	}
	for i, p := range c.Policies {
		if err := checkPolicy(p); err != nil {
			errs = append(errs, fmt.Errorf("policies[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func checkPolicy(p overlayPolicy) error {
	if p.Name != "EndpointPolicy" {
		return fmt.Errorf("name %q: the plugin reads EndpointPolicy only", p.Name)
	}
	switch p.Value.Type {
	case "OutBoundNAT":
		var s outboundNATSettings
		err := strictJSON(p.Value.Settings, &s)
		return errors.Join(err, prefixes(slices.Concat(s.Exceptions, s.ExceptionList)))
	case "SDNRoute":
		var s sdnRouteSettings
		err := strictJSON(p.Value.Settings, &s)
		return errors.Join(err, prefixes([]string{s.DestinationPrefix}))
	case "ProviderAddress":
		var s providerAddressSettings
		if err := strictJSON(p.Value.Settings, &s); err != nil {
			return err
		}
		_, err := netip.ParseAddr(s.ProviderAddress)
		return err
	}
	return fmt.Errorf("unknown endpoint policy %q", p.Value.Type)
}

func prefixes(all []string) error {
	var errs []error
	for _, p := range all {
		_, err := netip.ParsePrefix(p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func strictJSON(contents []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(contents))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
