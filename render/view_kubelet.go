package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsv1 "k8s.io/component-base/logs/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	utilnet "k8s.io/utils/net"
	"sigs.k8s.io/yaml"

	"time"

	"wmco/bundle"
	"wmco/layout"
	"wmco/payload"
)

const (
	clusterDomain = "cluster.local"
	// dnsIndex is the index of the cluster DNS's address in the service network.
	dnsIndex       = 10
	normalLogLevel = "2"
	debugLogLevel  = "4"
	// ownMaxPods is that of Linux nodes in OpenShift.
	ownMaxPods = 250
)

func (e *emitter) kubeletEntries() {
	e.addFile(rowKubeletConf, func(c Cluster) ([]byte, error) {
		config, err := c.kubeletConfig(e.stage)
		if err != nil {
			return nil, err
		}
		return encodeConfig(config, kubeletv1beta1.KubeletConfiguration{})
	})
	e.addFile(rowCredentialProvider, func(c Cluster) ([]byte, error) { return c.credentialProvider(e.hosts) })
	if r, ok := e.wantedRow(rowCredentialProvider); ok && e.hasCredentialProvider() {
		e.causedBy(r, r.Name, e.cluster.providerCauses(e.hosts))
	}
	e.addFile(rowCloudConf, func(c Cluster) ([]byte, error) { return c.cloudConf(e.hosts) })
	if _, ok := e.wantedRow(rowKubelet); ok {
		e.addService(rowKubelet, e.kubeletService())
	}
}

// kubeletConfig returns the configuration of a Windows kubelet, with the settings' override on top.
//
// The kubelet runs programs in the folder of volume plugins, as SYSTEM. Its default is C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec
// (k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1, DefaultVolumePluginDir), which every user of a host may make, or fill where the kubelet has made it.
//
// Until the Node exists, certificates are not rotated. A kubelet that rotates makes the key of its first certificate in memory
// (k8s.io/kubernetes/cmd/kubelet/app, buildKubeletClientConfig; k8s.io/client-go/util/certificate, generateCSR); one that does
// not keeps it in kubelet-client.key.tmp until it has the certificate (pkg/kubelet/certificate/bootstrap, LoadClientCert), where
// the operator reads its public half over SSH before it approves. Both use the same certificate file afterwards.
func (c Cluster) kubeletConfig(stage bundle.Stage) (kubeletv1beta1.KubeletConfiguration, error) {
	dns, err := c.clusterDNS()
	if err != nil {
		return kubeletv1beta1.KubeletConfiguration{}, err
	}
	config, err := c.mergedKubelet(stage)
	config.ClusterDNS = []string{dns}
	return config, err
}

// mergedKubelet is the configuration without the cluster's DNS.
func (c Cluster) mergedKubelet(stage bundle.Stage) (kubeletv1beta1.KubeletConfiguration, error) {
	config, err := overrideKubelet(kubeletv1beta1.KubeletConfiguration{
		TypeMeta:           metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		RotateCertificates: stage == bundle.StageJoined,
		ServerTLSBootstrap: true,
		StaticPodPath:      dirManifests,
		VolumePluginDir:    dirVolumes,
		Authentication: kubeletv1beta1.KubeletAuthentication{
			X509:      kubeletv1beta1.KubeletX509Authentication{ClientCAFile: fileKubeletCA},
			Anonymous: kubeletv1beta1.KubeletAnonymousAuthentication{Enabled: new(false)},
		},
		ClusterDomain:         clusterDomain,
		CgroupsPerQOS:         new(false),
		RuntimeRequestTimeout: metav1.Duration{Duration: 10 * time.Minute},
		MaxPods:               ownMaxPods,
		KubeAPIQPS:            new(int32(50)),
		KubeAPIBurst:          100,
		SerializeImagePulls:   new(false),
		Logging: logsv1.LoggingConfiguration{FlushFrequency: logsv1.TimeOrMetaDuration{
			Duration: metav1.Duration{Duration: 5 * time.Second}, SerializeAsString: true,
		}},
		// oc adm node-logs needs both, and both the feature gate NodeLogQuery, which is off before 1.36: such a kubelet
		// does not start without it (k8s.io/kubernetes/pkg/kubelet/apis/config/validation).
		EnableSystemLogHandler:   new(true),
		EnableSystemLogQuery:     new(true),
		ContainerLogMaxSize:      "50Mi",
		EvictionHard:             evictionHard(),
		SystemReserved:           map[string]string{"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
		EnforceNodeAllocatable:   []string{"none"},
		ContainerRuntimeEndpoint: containerdPipeURL,
		RegisterNode:             new(true),
		RegisterWithTaints: []corev1.Taint{{
			Key: windowsTaintKey, Value: windowsTaintValue, Effect: corev1.TaintEffectNoSchedule,
		}},
		ResolverConfig:  new(""),
		TLSMinVersion:   c.TLS.MinVersion,
		TLSCipherSuites: c.TLS.Ciphers,
	}, c.Settings.Kubelet)
	config.MaxPods = c.maxPods(config.MaxPods)
	config.FeatureGates = c.withGates(config.FeatureGates, "NodeLogQuery")
	return c.endsPods(config), err
}

// evictionHard returns the kubelet's own defaults for Windows
// (k8s.io/kubernetes/pkg/kubelet/eviction/defaults_windows.go). The kubelet uses them only where its configuration has
// no map at all: a key that is missing in a map is a threshold that the kubelet does not watch.
func evictionHard() map[string]string {
	return map[string]string{"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%"}
}

// withGates adds gates that the configuration depends on, where a kubelet or kube-proxy of this minor version has them
// off by default. A value that is set stays: checkKubeletOverride refuses the one that stops the program.
func (c Cluster) withGates(gates map[string]bool, names ...string) map[string]bool {
	out := maps.Clone(gates)
	for _, name := range names {
		g, known := c.kubeletTable().Gates[name]
		if _, set := out[name]; set || !known || g.Default {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[name] = true
	}
	return out
}

// clusterDNS returns the tenth address of the first service network.
func (c Cluster) clusterDNS() (string, error) {
	if len(c.Network.ServiceNetworks) == 0 {
		return "", fmt.Errorf("finding the cluster's DNS: no service network")
	}
	prefix, err := netip.ParsePrefix(c.Network.ServiceNetworks[0])
	if err != nil {
		return "", fmt.Errorf("finding the cluster's DNS: %w", err)
	}
	_, ipNet, err := utilnet.ParseCIDRSloppy(prefix.Masked().String())
	if err != nil {
		return "", fmt.Errorf("finding the cluster's DNS: %w", err)
	}
	ip, err := utilnet.GetIndexedIP(ipNet, dnsIndex)
	if err != nil {
		return "", fmt.Errorf("finding the cluster's DNS: %w", err)
	}
	return ip.String(), nil
}

// overrideKubelet replaces fields of the configuration by those of the override. A map or list is replaced as a whole,
// not merged.
func overrideKubelet(
	config kubeletv1beta1.KubeletConfiguration, override json.RawMessage,
) (kubeletv1beta1.KubeletConfiguration, error) {
	if len(override) == 0 {
		return config, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(override, &fields); err != nil {
		return config, fmt.Errorf("reading kubelet override: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		clearField(&config, name)
	}
	if err := json.Unmarshal(override, &config); err != nil {
		return config, fmt.Errorf("reading kubelet override: %w", err)
	}
	return config, nil
}

// clearField zeroes the field with that JSON name, because decoding into a map would add to it.
func clearField(config *kubeletv1beta1.KubeletConfiguration, name string) {
	v := reflect.ValueOf(config).Elem()
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			v.Field(i).SetZero()
		}
	}
}

// encodeConfig encodes a configuration as YAML. It leaves out what the type writes for an absent value: durations of 0s
// and empty structs of non-pointer fields. Readers treat both the same.
func encodeConfig[T any](config, zero T) ([]byte, error) {
	have, err := jsonFields(config)
	if err != nil {
		return nil, err
	}
	absent, err := jsonFields(zero)
	if err != nil {
		return nil, err
	}
	removeAbsent(have, absent)
	data, err := yaml.Marshal(have)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", config, err)
	}
	return data, nil
}

func jsonFields(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return nil, fmt.Errorf("reading %T: %w", v, err)
	}
	return fields, nil
}

func removeAbsent(have, absent map[string]any) {
	for name, zero := range absent {
		value, ok := have[name]
		if !ok {
			continue
		}
		below, isMap := value.(map[string]any)
		zeroBelow, zeroIsMap := zero.(map[string]any)
		if isMap && zeroIsMap {
			removeAbsent(below, zeroBelow)
			if len(below) == 0 {
				delete(have, name)
			}
			continue
		}
		if reflect.DeepEqual(value, zero) {
			delete(have, name)
		}
	}
}

func (e *emitter) kubeletService() bundle.Service {
	exe := payload.Find(payload.Kubelet).Path
	log := dirLogs + `\kubelet\kubelet.log`
	logs := e.cluster.Settings.Logs
	return bundle.Service{
		Argv:         logs.logRunner(log, append([]string{exe}, flagList(e.kubeletFlags())...)),
		Dependencies: []string{svcContainerd},
		Reads:        e.kubeletReads(exe),
		Recovery:     restartAlways(),
		Probe:        e.kubeletProbe(),
		Logs:         logs.rotationOf(log, bundle.RotationWrapper),
	}
}

// healthOf returns where a service answers whether it is healthy.
func healthOf(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/healthz", port) }

// kubeletProbe asks a kubelet whether it is healthy. Until the Node exists, it runs and serves nothing: it waits for
// its first certificate before (k8s.io/kubernetes/cmd/kubelet/app, run and buildKubeletClientConfig).
func (e *emitter) kubeletProbe() bundle.Probe {
	if e.stage == bundle.StageJoin {
		return bundle.Probe{Kind: bundle.ProbeRunning, DeadlineSeconds: 120}
	}
	return bundle.Probe{Kind: bundle.ProbeHTTP, Target: healthOf(layout.PortKubeletHealth), DeadlineSeconds: 120}
}

func (e *emitter) kubeletReads(exe string) []string {
	reads := []string{fileKubeletConf, payload.Find(payload.KubeLogRunner).Path, exe}
	if e.hasCredentialProvider() {
		reads = append(reads, fileCredentialProvider)
	}
	return reads
}

// kubeletFlags returns what the kubelet takes only as flags, and the shared flags of the pool's kubelet.service. A flag
// that this kubelet does not know is left out, because it would stop the kubelet.
func (e *emitter) kubeletFlags() map[string]string {
	flags := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.cluster.Machine.KubeletFlags)) {
		if e.cluster.kubeletTable().Flags[name] {
			flags[name] = e.cluster.Machine.KubeletFlags[name]
		}
	}
	maps.Copy(flags, map[string]string{
		"bootstrap-kubeconfig":  fileBootstrapKubeconfig,
		"cert-dir":              dirKubeletCerts,
		"config":                fileKubeletConf,
		"kubeconfig":            fileKubeconfig,
		"node-labels":           osLabel,
		"v":                     e.cluster.Settings.logVerbosity(),
		"windows-priorityclass": "ABOVE_NORMAL_PRIORITY_CLASS",
		"windows-service":       "true",
	})
	if ip := e.node.nodeIP(e.cluster.Platform); ip != "" {
		flags["node-ip"] = ip
	}
	if name := e.node.hostNameOverride(e.cluster.Platform); name != "" {
		flags["hostname-override"] = name
	}
	if id := e.node.providerID(e.cluster.Platform); id != "" {
		flags["provider-id"] = id
	}
	if e.hasCredentialProvider() {
		flags["image-credential-provider-bin-dir"] = dirRoot
		flags["image-credential-provider-config"] = fileCredentialProvider
	}
	return flags
}

// flagList returns flags in the order of their names; those with the value true are written without a value.
func flagList(flags map[string]string) []string {
	list := make([]string, 0, len(flags))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if flags[name] == "true" {
			list = append(list, "--"+name)
			continue
		}
		list = append(list, "--"+name+"="+flags[name])
	}
	return list
}

func (s Settings) logVerbosity() string {
	if s.Debug {
		return debugLogLevel
	}
	return normalLogLevel
}

// restartAlways restarts a service after 10, 30 and 60 seconds, then after two minutes each time. Five minutes without
// a failure reset the count.
func restartAlways() bundle.Recovery {
	return bundle.Recovery{RestartAfterSeconds: []int{10, 30, 60, 120}, ResetSeconds: 300}
}
