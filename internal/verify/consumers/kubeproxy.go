package consumers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/kube-proxy/config/v1alpha1"
	"k8s.io/kubernetes/pkg/proxy/apis/config"
	"k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	"k8s.io/kubernetes/pkg/proxy/apis/config/validation"
)

// checkKubeProxy reads kube-proxy's configuration as kube-proxy does at start: strictly (kube-proxy itself only warns
// about unknown fields), with its defaults and its validation.
func checkKubeProxy(_ context.Context, contents []byte, _ Options) error {
	decoded, kind, err := scheme.Codecs.UniversalDecoder().Decode(contents, nil, nil)
	if err != nil {
		return err
	}
	proxy, ok := decoded.(*config.KubeProxyConfiguration)
	if !ok || kind.GroupVersion() != v1alpha1.SchemeGroupVersion {
		return fmt.Errorf("a %s, not a KubeProxyConfiguration of %s", kind, v1alpha1.SchemeGroupVersion)
	}
	var errs []error
	// The one rule that depends on the system of the program (validateProxyMode): Windows has one mode.
	if proxy.Mode != config.ProxyModeKernelspace {
		errs = append(errs, fmt.Errorf("mode %q: Windows has only %s", proxy.Mode, config.ProxyModeKernelspace))
	}
	proxy.Mode = ""
	if list := validation.Validate(proxy); len(list) > 0 {
		errs = append(errs, list.ToAggregate())
	}
	if proxy.Winkernel.NetworkName == "" {
		errs = append(errs, errors.New("winkernel.networkName is missing"))
	}
	return errors.Join(errs...)
}
