package kubelet

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Defaults of Kubernetes 1.36 for what a configuration leaves out (pkg/kubelet/apis/config/v1beta1/defaults.go).
const (
	defaultHealthzPort  = 10248
	defaultPort         = 10250
	defaultMaxPods      = 110
	defaultLeaseSeconds = 40
	defaultGCHigh       = 85
	defaultGCLow        = 80
	defaultLogFiles     = 5
)

// readConfig reads kubelet.conf and refuses what the kubelet refuses on a host with that many processors.
func readConfig(text []byte, log *slog.Logger, processors int64) (kubeletv1beta1.KubeletConfiguration, error) {
	var c kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		c = kubeletv1beta1.KubeletConfiguration{}
		if lenient := yaml.Unmarshal(text, &c); lenient != nil {
			return c, fmt.Errorf("decoding: %w", lenient)
		}
		// As the kubelet does: unknown and repeated fields of v1beta1 are only logged (kubeletconfig/util/codec).
		log.Warn("the configuration has fields that are not known", "error", err)
	}
	if c.APIVersion != kubeletv1beta1.SchemeGroupVersion.String() || c.Kind != "KubeletConfiguration" {
		return c, fmt.Errorf("no kind %q is registered for version %q", c.Kind, c.APIVersion)
	}
	setDefaults(&c)
	return c, errors.Join(checkConfig(c), checkProcessors(c, processors))
}

// checkProcessors has the rule of the static policy (pkg/kubelet/cm/cpumanager, NewStaticPolicy).
func checkProcessors(c kubeletv1beta1.KubeletConfiguration, have int64) error {
	if c.CPUManagerPolicy != "static" || !c.FeatureGates["WindowsCPUAndMemoryAffinity"] {
		return nil
	}
	var all resource.Quantity
	for _, list := range []map[string]string{c.SystemReserved, c.KubeReserved} {
		if q, err := resource.ParseQuantity(list["cpu"]); err == nil {
			all.Add(q)
		}
	}
	if all.CmpInt64(have) > 0 {
		return fmt.Errorf("reserving %s processors: the host has %d", all.String(), have)
	}
	return nil
}

func setDefaults(c *kubeletv1beta1.KubeletConfiguration) {
	setDefault(&c.HealthzPort, defaultHealthzPort)
	setDefault(&c.ImageGCHighThresholdPercent, defaultGCHigh)
	setDefault(&c.ImageGCLowThresholdPercent, defaultGCLow)
	setDefault(&c.ContainerLogMaxFiles, defaultLogFiles)
	setZero(&c.Port, defaultPort)
	setZero(&c.MaxPods, defaultMaxPods)
	setZero(&c.NodeLeaseDurationSeconds, defaultLeaseSeconds)
	setZero(&c.HealthzBindAddress, "127.0.0.1")
	setZero(&c.TopologyManagerPolicy, "none")
	setZero(&c.TopologyManagerScope, "container")
	setZero(&c.HairpinMode, "promiscuous-bridge")
	setZero(&c.ContainerLogMaxSize, "10Mi")
	truth := true
	if c.RegisterNode == nil {
		c.RegisterNode = &truth
	}
	if c.EnableControllerAttachDetach == nil {
		c.EnableControllerAttachDetach = &truth
	}
	if c.CgroupsPerQOS == nil {
		c.CgroupsPerQOS = &truth
	}
	if c.EvictionHard == nil {
		// pkg/kubelet/eviction/defaults_windows.go
		c.EvictionHard = map[string]string{"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%"}
	}
	if c.EnforceNodeAllocatable == nil {
		c.EnforceNodeAllocatable = []string{"pods"}
	}
}

func setDefault(field **int32, value int32) {
	if *field == nil {
		*field = &value
	}
}

func setZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// checkConfig has rules of ValidateKubeletConfiguration (pkg/kubelet/apis/config/validation, and
// validation_windows.go).
func checkConfig(c kubeletv1beta1.KubeletConfiguration) error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("invalid configuration: "+format, args...))
		}
	}
	port := func(n int32) bool { return n < 1 || n > 65535 }
	add(c.NodeLeaseDurationSeconds <= 0, "nodeLeaseDurationSeconds %d", c.NodeLeaseDurationSeconds)
	add(*c.HealthzPort != 0 && port(*c.HealthzPort), "healthzPort %d", *c.HealthzPort)
	add(port(c.Port), "port %d", c.Port)
	add(c.ReadOnlyPort != 0 && port(c.ReadOnlyPort), "readOnlyPort %d", c.ReadOnlyPort)
	add(c.MaxPods < 0, "maxPods %d", c.MaxPods)
	add(c.PodsPerCore < 0, "podsPerCore %d", c.PodsPerCore)
	add(c.RegistryBurst < 0, "registryBurst %d", c.RegistryBurst)
	add(c.KubeAPIBurst < 0, "kubeAPIBurst %d", c.KubeAPIBurst)
	high, low := *c.ImageGCHighThresholdPercent, *c.ImageGCLowThresholdPercent
	add(high < 0 || high > 100 || low < 0 || low > 100 || low >= high, "imageGCLowThresholdPercent %d, imageGCHighThresholdPercent %d", low, high)
	add(
		!slices.Contains([]string{"none", "best-effort", "restricted", "single-numa-node"}, c.TopologyManagerPolicy),
		"topologyManagerPolicy %q", c.TopologyManagerPolicy,
	)
	add(!slices.Contains([]string{"container", "pod"}, c.TopologyManagerScope), "topologyManagerScope %q", c.TopologyManagerScope)
	add(!slices.Contains([]string{"none", "hairpin-veth", "promiscuous-bridge"}, c.HairpinMode), "hairpinMode %q", c.HairpinMode)
	add(*c.ContainerLogMaxFiles <= 1, "containerLogMaxFiles %d", *c.ContainerLogMaxFiles)
	add(c.SingleProcessOOMKill != nil, "singleProcessOOMKill is not supported on Windows")
	add(c.UserNamespaces != nil, "userNamespaces is not supported on Windows")
	for _, e := range c.EnforceNodeAllocatable {
		add(e != "none" && (e != "pods" || !*c.CgroupsPerQOS), "enforceNodeAllocatable %q", e)
	}
	for _, t := range c.RegisterWithTaints {
		add(checkTaint(t) != nil, "taint %q", t.ToString())
	}
	if _, err := resource.ParseQuantity(c.ContainerLogMaxSize); err != nil {
		add(true, "containerLogMaxSize %q: %w", c.ContainerLogMaxSize, err)
	}
	for _, list := range []map[string]string{c.SystemReserved, c.KubeReserved} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			_, err := resource.ParseQuantity(list[name])
			add(err != nil, "reserved %s %q", name, list[name])
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(c.EvictionHard)) {
		add(!isThreshold(c.EvictionHard[signal]) || !slices.Contains(signals, signal), "evictionHard %s<%s", signal, c.EvictionHard[signal])
	}
	return errors.Join(errs...)
}

// signals are the eviction signals (pkg/kubelet/eviction/api).
var signals = []string{
	"memory.available", "allocatableMemory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
	"imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree", "pid.available",
}

// isThreshold reports whether a text is a quantity or a percentage.
func isThreshold(text string) bool {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		return err == nil && n >= 0 && n <= 100
	}
	q, err := resource.ParseQuantity(text)
	return err == nil && q.Sign() >= 0
}
