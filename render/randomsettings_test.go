package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/bundle"
	"wmco/internal/test/seed"
	"wmco/payload"
	"wmco/render/kubelets"
)

// settingsEnv is a folder into which TestRandomSettingsOfTheKubelet writes its settings for the kubelets themselves (hack/minors, internal/verify/consumers).
const settingsEnv = "WMCO_SETTINGS"

// minorsEnv are the minor versions for which it writes as many as hack/minors compares, parted by blanks; empty for all.
const minorsEnv = "WMCO_MINORS"

// isCompared reports whether a kubelet of the minor version reads the settings.
func isCompared(minor string) bool {
	chosen := strings.Fields(os.Getenv(minorsEnv))
	return os.Getenv(settingsEnv) != "" && (len(chosen) == 0 || slices.Contains(chosen, minor))
}

const (
	anyNumber   = `-2147483648 -1001 -1000 -1 0 1 2 3 14 15 31 32 79 80 84 85 100 101 1000 1001 2147483647`
	anyDuration = `"-1s" "0s" "1ns" "999us" "1ms" "50ms" "100ms" "999ms" "1s" "2999ms" "3s" "10s" "40s" "41s" "2m" "119s" "300s" "301s" "24h"`
	anyQuantity = `"" "0" "-1" "1" "1.5" "500m" "50Mi" "2Gi" "2G i" "1e3" "1e40" "abc" "10%"`
	anyBool     = `true false`
)

// kubeletValues are values of the fields that settings may set, the good ones and the bad: JSON, parted by blanks outside of quotes. Of a map, one or two
// entries are taken.
func kubeletValues() map[string]string {
	values := map[string]string{
		"configMapAndSecretChangeDetectionStrategy": `"Get" "Cache" "Watch" "watch" ""`,
		"contentType":                            `"application/json" "application/vnd.kubernetes.protobuf"`,
		"cpuManagerPolicy":                       `"none" ""`,
		"hairpinMode":                            `"none" "hairpin-veth" "promiscuous-bridge" "other" ""`,
		"imagePullCredentialsVerificationPolicy": `"" "NeverVerify" "NeverVerifyPreloadedImages" "NeverVerifyAllowlistedImages" "AlwaysVerify" "Always"`,
		"memoryManagerPolicy":                    `"None" "Static" ""`,
		"preloadedImagesVerificationAllowlist":   `[] ["quay.io/a/b"] ["quay.io/*"] ["/*"] ["*"] ["quay.io/a*"] ["quay.io/a:1"] ["a:5000/b"] ["a:5000"] ["Quay.io/A"] ["[::1]:5000/a"] ["a__b/c-d.e"] ["a//b"] [""] ["quay.io/a@sha256:0123456789012345678901234567890123456789012345678901234567890123"]`,
		"showHiddenMetricsForVersion":            `"" "1.30" "1.31" "1.32" "1.33" "1.34" "1.35" "1.36" "1.37" "v1.35" "abc"`,
		"topologyManagerPolicy":                  `"none" "best-effort" "restricted" "single-numa-node" "" "other"`,
		"topologyManagerScope":                   `"container" "pod" "" "node"`,
		"topologyManagerPolicyOptions":           `{} {"prefer-closest-numa-nodes":"true"} {"other":"1"}`,
		"cpuManagerPolicyOptions":                `{} {"full-pcpus-only":"true"}`,
		"allowedUnsafeSysctls":                   `[] ["kernel.shm*"]`,
		"reservedMemory":                         `[] [{"numaNode":0,"limits":{"memory":"1Gi"}}] [{"numaNode":0,"limits":{"memory":"0"}}] [{"numaNode":0,"limits":{"cpu":"1"}}] [{"numaNode":0,"limits":{"hugepages-2Mi":"1Gi"}},{"numaNode":1,"limits":{"hugepages-2Mi":"1Gi"}}] [{"numaNode":0,"limits":{"memory":"1Gi"}},{"numaNode":0,"limits":{"memory":"1Gi"}}]`,
		"shutdownGracePeriodByPodPriority":       `[] [{"priority":1,"shutdownGracePeriodSeconds":10}] [{"priority":1,"shutdownGracePeriodSeconds":-1}]`,
		"crashLoopBackOff":                       `{} {"maxContainerRestartPeriod":"1s"} {"maxContainerRestartPeriod":"999ms"} {"maxContainerRestartPeriod":"300s"} {"maxContainerRestartPeriod":"300.0005s"} {"maxContainerRestartPeriod":"301s"} {"maxContainerRestartPeriod":"0s"}`,
		"logging":                                `{} {"format":"json"} {"format":"text"} {"format":"xml"} {"flushFrequency":"0s"} {"flushFrequency":"-1s"} {"flushFrequency":5000000000} {"verbosity":7} {"vmodule":[{"filePattern":"a","verbosity":3}]} {"vmodule":[{"filePattern":"","verbosity":3}]} {"vmodule":[{"filePattern":"a=b","verbosity":3}]} {"format":"json","vmodule":[{"filePattern":"a","verbosity":3}]} {"format":"json","options":{"json":{"infoBufferSize":"1"}}} {"options":{"json":{"splitStream":true}}} {"options":{"text":{"splitStream":true}}} {"options":{"text":{"infoBufferSize":"0"}}} {"options":{"text":{"infoBufferSize":"1Mi"}}} {"options":{"json":{"infoBufferSize":"100m"}}}`,
	}
	for list, value := range map[string]string{
		`containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod imageGCHighThresholdPercent imageGCLowThresholdPercent
			iptablesDropBit iptablesMasqueradeBit kubeAPIBurst kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages oomScoreAdj
			podPidsLimit podsPerCore registryBurst registryPullQPS`: anyNumber + " null",
		`containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge
			imageMinimumGCAge nodeStatusReportFrequency nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
			streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod`: anyDuration,
		`cpuCFSQuota enableContentionProfiling enableDebugFlagsHandler enableProfilingHandler enableSystemLogHandler enableSystemLogQuery failCgroupV1 localStorageCapacityIsolation
			mergeDefaultEvictionSettings serializeImagePulls`: anyBool + " null",
		"containerLogMaxSize": anyQuantity,
	} {
		for field := range strings.FieldsSeq(list) {
			values[field] = value
		}
	}
	return values
}

// kubeletMaps are fields that are maps of texts, with their keys and values.
func kubeletMaps() map[string][2]string {
	const signals = `memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree containerfs.available pid.available allocatableMemory.available memory.free`
	const thresholds = anyQuantity + ` "0%" "100%" "101%" "-1%" "5%" "5%%" "NaN%" "Inf%" "1e99%" "%" "0.001%"`
	const reserved = `cpu memory ephemeral-storage pid hugepages-2Mi`
	return map[string][2]string{
		"evictionHard": {signals, thresholds}, "evictionSoft": {signals, thresholds}, "evictionMinimumReclaim": {signals, thresholds},
		"evictionSoftGracePeriod": {signals, anyDuration + ` "abc" ""`},
		"systemReserved":          {reserved, anyQuantity}, "kubeReserved": {reserved, anyQuantity},
		"qosReserved": {"memory cpu", `"0%" "50%" "100%" "101%" "-1%" "50" "5%%" "%" "1.5%" "+5%"`},
	}
}

// randomSettings are one to four fields that a kubelet knows.
type randomSettings struct {
	*rand.Rand
	gates  []string
	fields map[string]bool
}

func (r randomSettings) pick(list []string) string { return list[r.IntN(len(list))] }

func (r randomSettings) next() string {
	values, tables := kubeletValues(), kubeletMaps()
	fields := slices.DeleteFunc(slices.Concat(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(tables)), []string{"featureGates"}), func(f string) bool { return !r.fields[f] })
	all := map[string]string{}
	for range 1 + r.IntN(4) {
		switch field := r.pick(fields); {
		case field == "featureGates":
			all[field] = r.entries(r.gates, []string{"true", "false"})
		case values[field] != "":
			all[field] = r.pick(splitValues(values[field]))
		default:
			all[field] = r.entries(strings.Fields(tables[field][0]), splitValues(tables[field][1]))
		}
	}
	var text []string
	for _, field := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%q:%s", field, all[field]))
	}
	return "{" + strings.Join(text, ",") + "}"
}

// entries returns a mapping of one to three keys.
func (r randomSettings) entries(keys, values []string) string {
	all := map[string]json.RawMessage{}
	for range 1 + r.IntN(3) {
		all[r.pick(keys)] = json.RawMessage(r.pick(values))
	}
	text, _ := json.Marshal(all)
	return string(text)
}

func splitValues(text string) []string {
	var all []string
	d := json.NewDecoder(strings.NewReader(text))
	for d.More() {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			panic(err)
		}
		all = append(all, string(v))
	}
	return all
}

// gatesOf are gates on which rules depend, and others of this kubelet and of none.
func gatesOf(r *rand.Rand, table kubelets.Table) []string {
	gates := strings.Fields(`CustomCPUCFSQuotaPeriod GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority ImageMaximumGCAge KubeletCrashLoopBackOffMax
		KubeletEnsureSecretPulledImages LoggingAlphaOptions LoggingBetaOptions NodeLogQuery RotateKubeletServerCertificate TopologyManagerPolicyOptions WindowsGracefulNodeShutdown`)
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(table.Gates)), func(name string) bool {
		// The first two and the last are refused though the kubelet starts; what the fourth decides depends on Windows.
		return slices.Contains([]string{"AllAlpha", "AllBeta", "GitRepoVolumeDriver", gateWindowsAffinity}, name)
	})
	for range 10 {
		gates = append(gates, known[r.IntN(len(known))])
	}
	return append(gates, "NoSuchGate")
}

// TestRandomSettingsOfTheKubelet: about half of the settings are refused, and each field is that can be wrong. Whether the kubelets agree is for programs
// that link them: they read what this test writes.
func TestRandomSettingsOfTheKubelet(t *testing.T) {
	random := seed.New(t)
	refusedEver := map[string]bool{}
	for _, release := range payload.Releases() {
		c := testCluster(bundle.PlatformNone)
		c.Version = release.Clusters()[0] + ".1"
		r := randomSettings{random, gatesOf(random, c.kubeletTable()), c.kubeletTable().Fields}
		refused, number := 0, 200
		if isCompared(release.Minor) {
			number = 10000
		}
		var lines []byte
		for range number {
			c.Settings.Kubelet = json.RawMessage(r.next())
			fields := c.refusedFields(t)
			if len(fields) > 0 {
				refused++
			}
			for _, field := range fields {
				refusedEver[field[:strings.IndexAny(field+".", ".[")]] = true
			}
			lines = append(lines, c.settingsLine(t, fields)...)
		}
		if refused < number/5 || refused > number*4/5 {
			t.Errorf("Kubernetes %s: %d of %d settings are refused", release.Minor, refused, number)
		}
		writeSettings(t, release.Minor, lines)
	}
	for field := range kubeletValues() {
		if os.Getenv(settingsEnv) != "" && os.Getenv(minorsEnv) == "" && !refusedEver[field] && !slices.Contains(strings.Fields(harmless), field) {
			t.Errorf("%s is never refused", field)
		}
	}
}

// harmless are fields that no finding names here. Processors are managed only with a gate that is left out, and the last two are named beside another field.
// Options of topologyManagerPolicy need a gate that is seldom off.
const harmless = `allowedUnsafeSysctls contentType cpuCFSQuota cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod enableContentionProfiling
	enableDebugFlagsHandler enableProfilingHandler evictionMaxPodGracePeriod evictionPressureTransitionPeriod failCgroupV1 httpCheckFrequency localStorageCapacityIsolation
	memoryManagerPolicy mergeDefaultEvictionSettings nodeStatusReportFrequency nodeStatusUpdateFrequency podPidsLimit streamingConnectionIdleTimeout volumeStatsAggPeriod
	topologyManagerPolicyOptions enableSystemLogQuery serializeImagePulls`

// refusedFields are the fields of the findings that refuse the override.
func (c Cluster) refusedFields(t *testing.T) []string {
	t.Helper()
	var fields []string
	for _, f := range slices.Concat(decodeKubeletOverride(c.Settings.Kubelet), c.checkKubeletOverride()) {
		if f.Severity == bundle.SeverityWarning {
			continue
		}
		_, field, ok := strings.Cut(f.Field, "kubelet.")
		if !ok {
			t.Fatalf("%s: %+v", c.Settings.Kubelet, f)
		}
		fields = append(fields, field)
	}
	return fields
}

// settingsLine is a setting as settings.go of internal/verify/consumers reads it.
func (c Cluster) settingsLine(t *testing.T, refused []string) []byte {
	t.Helper()
	config, err := c.kubeletConfig(bundle.StageJoined)
	if err != nil {
		t.Fatalf("%s: %v", c.Settings.Kubelet, err)
	}
	conf, err := encodeConfig(config, kubeletv1beta1.KubeletConfiguration{})
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{"Settings": string(c.Settings.Kubelet), "Config": string(conf), "Refused": refused})
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

func writeSettings(t *testing.T, minor string, lines []byte) {
	t.Helper()
	dir := os.Getenv(settingsEnv)
	if dir == "" {
		return
	}
	if err := os.MkdirAll(filepath.Join(dir, minor), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, minor, "settings.jsonl"), lines, 0o600); err != nil {
		t.Fatal(err)
	}
}
