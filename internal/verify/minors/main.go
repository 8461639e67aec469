// Command minors holds rendered configuration to the kubelet and kube-proxy of one minor version of Kubernetes: their
// own decoders, strictly, with their defaults, feature gates and validation. hack/minors builds it with the pins of
// each payload/kubernetes-<minor>.
//
//	minors FILE... (kubelet.conf, kube-proxy.conf; settings.jsonl: random settings with our findings; kubelet-keys.txt: entries of a
//	pull secret, images, and whether a kubelet uses the entry for the image)
//
// settings.go and the rules of the kubelet's start are those of internal/verify/consumers, which hack/minors copies.
// It runs on Linux, where what only exists there is left out. Exit status: 0 all are accepted, 1 one is not.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	kubeletvalidation "k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	proxyscheme "k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	proxyvalidation "k8s.io/kubernetes/pkg/proxy/apis/config/validation"
)

func main() {
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		fmt.Fprintln(os.Stderr, "minors:", err)
		os.Exit(1)
	}
	failed := len(os.Args) < 2
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "minors: %s: %v\n", file, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func check(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	switch filepath.Base(file) {
	case "kubelet.conf":
		return checkKubelet(data)
	case "kube-proxy.conf":
		return checkProxy(data)
	case "settings.jsonl":
		accepted, refused, differences := compareSettings(bytes.NewReader(data), checkKubelet)
		fmt.Printf("minors: random settings: %d accepted, %d refused\n", accepted, refused)
		return errors.Join(differences...)
	case "kubelet-keys.txt":
		return checkKeys(strings.Fields(string(data)))
	}
	return errors.New("is none of kubelet.conf, kube-proxy.conf, settings.jsonl and kubelet-keys.txt")
}

func checkKubelet(data []byte) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("would panic: %v", cause)
		}
	}()
	_, codecs, err := kubeletscheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return err
	}
	decoded, _, err := codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return err
	}
	config, ok := decoded.(*kubeletconfig.KubeletConfiguration)
	if !ok {
		return fmt.Errorf("is a %T", decoded)
	}
	// The part of the validation that reads the cgroups of this computer. Not every minor version has all of these
	// fields.
	for _, name := range []string{"FailCgroupV1", "SingleProcessOOMKill", "UserNamespaces"} {
		if f := reflect.ValueOf(config).Elem().FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
	gates, err := withGates(config.FeatureGates)
	if err != nil {
		return err
	}
	return errors.Join(kubeletvalidation.ValidateKubeletConfiguration(config, gates), kubeletStart(config))
}

// withGates sets gates as the programs do at start: an unknown one, or another value of a locked one, is an error.
func withGates(set map[string]bool) (featuregate.FeatureGate, error) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	return gates, gates.SetFromMap(set)
}

func checkProxy(data []byte) error {
	decoded, _, err := proxyscheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return err
	}
	config, ok := decoded.(*proxyconfig.KubeProxyConfiguration)
	if !ok {
		return fmt.Errorf("is a %T", decoded)
	}
	gates, err := withGates(config.FeatureGates)
	if err != nil {
		return err
	}
	// What kube-proxy checks when it has found the network, on Windows alone (pkg/proxy/winkernel, NewProxier).
	for name, needed := range map[featuregate.Feature]bool{"WinDSR": config.Winkernel.EnableDSR, "WinOverlay": true} {
		if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[name]; known && needed && !gates.Enabled(name) {
			return fmt.Errorf("feature gate %s is off, and kube-proxy does not start without it", name)
		}
	}
	config.Mode = "" // Windows has its own
	if list := proxyvalidation.Validate(config); len(list) > 0 {
		return list.ToAggregate()
	}
	return nil
}
