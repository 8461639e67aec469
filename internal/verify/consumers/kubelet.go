package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"

	// The kubelet's own packages register its feature gates, including those of logging, and the format of logs that
	// its program adds.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
)

// checkKubelet reads the kubelet's configuration as the kubelet does at start: strictly (the kubelet itself only warns
// about unknown fields), with its defaults, its validation and its feature gates.
func checkKubelet(_ context.Context, contents []byte, _ Options) error {
	kc, err := decodeKubelet(contents)
	if err != nil {
		return err
	}
	errs := []error{kubeletOnWindows(kc), kubeletStart(kc)}
	// This turns off the Linux-only part of the validation, which reads the cgroup version of this system.
	kc.FailCgroupV1 = false
	kc.SingleProcessOOMKill = nil
	kc.UserNamespaces = nil
	return errors.Join(append(errs, validation.ValidateKubeletConfiguration(kc, utilfeature.DefaultFeatureGate))...)
}

func decodeKubelet(contents []byte) (*config.KubeletConfiguration, error) {
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, err
	}
	decoded, kind, err := codecs.UniversalDecoder().Decode(contents, nil, nil)
	if err != nil {
		return nil, err
	}
	kc, ok := decoded.(*config.KubeletConfiguration)
	if !ok || kind.GroupVersion() != v1beta1.SchemeGroupVersion {
		return nil, fmt.Errorf("a %s, not a KubeletConfiguration of %s", kind, v1beta1.SchemeGroupVersion)
	}
	return kc, nil
}

// kubeletOnWindows is the part of Kubernetes' validation that is only compiled for Windows
// (k8s.io/kubernetes/pkg/kubelet/apis/config/validation/validation_windows.go), its warnings taken as errors.
func kubeletOnWindows(kc *config.KubeletConfiguration) error {
	var errs []error
	if kc.SingleProcessOOMKill != nil {
		errs = append(errs, errors.New("singleProcessOOMKill is not supported on Windows"))
	}
	if kc.UserNamespaces != nil {
		errs = append(errs, errors.New("userNamespaces is not supported on Windows"))
	}
	if kc.CgroupsPerQOS {
		errs = append(errs, errors.New("cgroupsPerQOS is not supported on Windows"))
	}
	if !slices.Equal(kc.EnforceNodeAllocatable, []string{"none"}) {
		errs = append(errs, fmt.Errorf("enforceNodeAllocatable %v is not supported on Windows", kc.EnforceNodeAllocatable))
	}
	return errors.Join(errs...)
}
