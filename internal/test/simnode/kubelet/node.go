package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/payload"
)

// Keys that are not in k8s.io/api (k8s.io/kubelet/pkg/apis, k8s.io/cloud-provider/api, pkg/volume/util).
const (
	labelOldOS           = "beta.kubernetes.io/os"
	labelOldArch         = "beta.kubernetes.io/arch"
	taintUninitialized   = "node.cloudprovider.kubernetes.io/uninitialized"
	annotationProvidedIP = "alpha.kubernetes.io/provided-node-ip"
	annotationAttach     = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// initialNode follows initialNode of the kubelet.
func (k *kubelet) initialNode(ctx context.Context) (*corev1.Node, error) {
	facts, err := k.Host.Facts(ctx)
	if err != nil {
		return nil, err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: k.name, Labels: defaultLabels(nodeName(k.flags.hostName, facts.HostName), facts),
		Annotations: map[string]string{},
	}}
	maps.Copy(n.Labels, k.flags.labels)
	n.Spec.Taints = slices.Clone(k.taints)
	if k.hasCloudProvider() {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintUninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	if *k.config.EnableControllerAttachDetach {
		n.Annotations[annotationAttach] = "true"
	}
	k.setStatus(ctx, n, facts)
	return n, nil
}

// defaultLabels are those that a kubelet sets again when its Node exists (updateDefaultLabels).
func defaultLabels(host string, facts bundle.Facts) map[string]string {
	return map[string]string{
		corev1.LabelHostname: host, corev1.LabelOSStable: "windows", corev1.LabelArchStable: "amd64", labelOldOS: "windows", labelOldArch: "amd64",
		corev1.LabelWindowsBuild: facts.OSBuild,
	}
}

// hasCloudProvider reports whether a cloud controller manager completes the Node.
func (k *kubelet) hasCloudProvider() bool { return k.flags.cloudProvider == "external" }

// setStatus writes what the kubelet knows into the status of a Node (defaultNodeStatusFuncs).
func (k *kubelet) setStatus(ctx context.Context, n *corev1.Node, facts bundle.Facts) {
	k.setAddresses(n, facts)
	k.setResources(n)
	n.Status.NodeInfo = nodeInfo(facts, k.version)
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = k.config.Port
	now := metav1.NewTime(k.Now())
	for _, c := range []corev1.NodeCondition{
		{
			Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
			Message: "kubelet has sufficient memory available",
		},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{
			Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
			Message: "kubelet has sufficient PID available",
		},
		k.ready(ctx),
	} {
		c.LastHeartbeatTime = now
		setCondition(n, c)
	}
}

// setCondition replaces a condition. Its transition is as old as its status.
func setCondition(n *corev1.Node, c corev1.NodeCondition) {
	at := slices.IndexFunc(n.Status.Conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type })
	c.LastTransitionTime = c.LastHeartbeatTime
	if at < 0 {
		n.Status.Conditions = append(n.Status.Conditions, c)
		return
	}
	if old := n.Status.Conditions[at]; old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	n.Status.Conditions[at] = c
}

// setAddresses follows nodestatus.NodeAddress. An address that no adapter has is not set.
func (k *kubelet) setAddresses(n *corev1.Node, facts bundle.Facts) {
	ip, host := facts.DefaultRoute.Address, nodeName(k.flags.hostName, facts.HostName)
	if k.flags.nodeIP != "" {
		ip = k.flags.nodeIP
	}
	switch {
	case k.hasCloudProvider() && k.flags.nodeIP != "":
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationProvidedIP, k.flags.nodeIP)
	default:
		delete(n.Annotations, annotationProvidedIP)
	}
	switch {
	case k.hasCloudProvider() && len(n.Status.Addresses) > 0: // the cloud knows better
	case k.hasCloudProvider() && k.flags.nodeIP == "":
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: host}}
	case net.ParseIP(ip) == nil || !slices.Contains(facts.Addresses, ip):
		k.Log.Error("setting the addresses: no adapter has the node IP", "ip", ip)
	default:
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: host}}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addresses = slices.Clone(n.Status.Addresses)
}

func (k *kubelet) lastAddresses() []corev1.NodeAddress {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.addresses
}

// setResources follows nodestatus.MachineInfo: allocatable is what neither a reservation nor a hard eviction threshold
// keeps.
func (k *kubelet) setResources(n *corev1.Node) {
	h := k.Hardware
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(h.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(h.Memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(h.Disk, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(k.config.MaxPods), resource.DecimalSI),
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	for _, reserved := range []map[string]string{k.config.SystemReserved, k.config.KubeReserved} {
		for name, text := range reserved {
			keep(n.Status.Allocatable, corev1.ResourceName(name), resource.MustParse(text)) // checkConfig has parsed it
		}
	}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		if text := k.config.EvictionHard[signal]; text != "" {
			keep(n.Status.Allocatable, name, diskThreshold(text, n.Status.Capacity[name]))
		}
	}
}

// diskThreshold is a quantity, or a part of what there is.
func diskThreshold(text string, of resource.Quantity) resource.Quantity {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.MustParse(text) // checkConfig has parsed it
	}
	part, _ := strconv.ParseFloat(percent, 64) // checkConfig has parsed it
	return *resource.NewQuantity(int64(float64(of.Value())*part/100), of.Format)
}

// keep takes a quantity away, down to zero.
func keep(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	left, ok := list[name]
	if !ok {
		return
	}
	left.Sub(q)
	if left.Sign() < 0 {
		left.Set(0)
	}
	list[name] = left
}

// editions are the names of Windows by build (learn.microsoft.com/windows/release-health/windows-server-release-info).
var editions = map[string]string{
	"10.0.17763": "Windows Server 2019 Datacenter", "10.0.20348": "Windows Server 2022 Datacenter", "10.0.26100": "Windows Server 2025 Datacenter",
}

// nodeInfo follows nodestatus.VersionInfo and MachineInfo on Windows, where the name of the computer is its machine ID
// (pkg/kubelet/winstats).
func nodeInfo(facts bundle.Facts, version string) corev1.NodeSystemInfo {
	image, ok := editions[facts.OSBuild]
	if !ok {
		image = "Windows Server Datacenter"
	}
	return corev1.NodeSystemInfo{
		MachineID: facts.HostName, SystemUUID: systemUUID(facts.HostName), BootID: facts.BootTime,
		KernelVersion: facts.OSBuild + ".1000", OSImage: image,
		ContainerRuntimeVersion: "containerd://" + strings.TrimPrefix(payload.ContainerdVersion, "v"), KubeletVersion: version,
		OperatingSystem: "windows", Architecture: "amd64",
	}
}

// systemUUID is that of the firmware, the same for each start.
func systemUUID(host string) string {
	sum := strings.ToUpper(strings.TrimPrefix(string(bundle.Of([]byte(host))), "sha256:"))
	return fmt.Sprintf("%s-%s-%s-%s-%s", sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32])
}

// ready follows nodestatus.ReadyCondition: the container runtime runs, and it has a configuration of the pod network.
func (k *kubelet) ready(ctx context.Context) corev1.NodeCondition {
	c := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status",
	}
	if err := errors.Join(k.runtimeError(ctx), k.networkError(ctx)); err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	return c
}

const containerd = "containerd"

func (k *kubelet) runtimeError(ctx context.Context) error {
	services, err := k.Host.Services(ctx, []string{containerd})
	if err == nil && services[0].Status != plan.ServiceRunning {
		err = errors.New("container runtime is down")
	}
	return err
}

// networkError is what the runtime reports before there is a file in its CNI folder.
func (k *kubelet) networkError(ctx context.Context) error {
	if _, err := k.podSubnet(ctx); err != nil {
		return fmt.Errorf("container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message: %w", err)
	}
	return nil
}

// containerdConfig has the fields that are read of containerd's configuration, version 3 and later.
type containerdConfig struct {
	Plugins map[string]struct {
		CNI struct {
			ConfDir string `toml:"conf_dir"`
		} `toml:"cni"`
	} `toml:"plugins"`
}

const cniPlugin = "io.containerd.cri.v1.runtime"

// cniFolder remembers where the CNI configurations are by a configuration of containerd.
type cniFolder struct {
	mu         sync.Mutex
	text, path string
}

func (c *cniFolder) folder(text string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path != "" && c.text == text {
		return c.path, nil
	}
	var config containerdConfig
	if err := toml.Unmarshal([]byte(text), &config); err != nil {
		return "", err
	}
	c.text, c.path = text, config.Plugins[cniPlugin].CNI.ConfDir
	return c.path, nil
}

// podSubnet returns the subnet of the pod network, from the first configuration in the CNI folder of the runtime.
func (k *kubelet) podSubnet(ctx context.Context) (string, error) {
	text, err := k.Host.ReadFile(k.containerdConfig(ctx))
	if err != nil {
		return "", err
	}
	folder, err := k.cni.folder(string(text))
	if err != nil {
		return "", err
	}
	files, err := k.Host.List(ctx, folder)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		name := strings.ToLower(f.Path)
		if f.Kind == plan.FileRegular && (strings.HasSuffix(name, ".conf") || strings.HasSuffix(name, ".conflist") || strings.HasSuffix(name, ".json")) {
			return k.subnetIn(f.Path)
		}
	}
	return "", errors.New("cni plugin not initialized")
}
