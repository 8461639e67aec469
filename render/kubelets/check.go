package kubelets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Problem is why a kubelet ends with a configuration.
type Problem struct {
	// Fields are the JSON paths of the field that is wrong, or of those that do not fit together.
	Fields  []string
	Message string
}

// Check returns all problems with which this kubelet ends, sorted by field: those of its own validation
// (k8s.io/kubernetes/pkg/kubelet/apis/config/validation), and what it refuses when it reads the values
// (cmd/kubelet/app/server.go, pkg/kubelet/kubelet.go). What depends on the host is left out, and so are fields that
// settings may not set and feature gates. hack/minors holds it to the kubelets themselves.
func (t Table) Check(config kubeletv1beta1.KubeletConfiguration) []Problem {
	c := &check{kubelet: t, config: config}
	c.checkNumbers()
	c.checkChoices()
	c.checkTimes()
	c.checkImageRemoval()
	c.checkPreloadedImages()
	c.checkShutdown()
	c.checkLogHandlers()
	c.checkLogging()
	c.checkEviction()
	c.checkQuantities()
	c.checkReservedMemory()
	c.checkManagers()
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return strings.Compare(a.Fields[0], b.Fields[0]) })
	return c.problems
}

// IsOn reports whether a feature gate is on in this kubelet with these gates set. One that it does not know is off.
func (t Table) IsOn(set map[string]bool, name string) bool {
	if value, given := set[name]; given {
		return value
	}
	return t.Gates[name].Default
}

// minorVersion is 36 for "v1.36.3".
func (t Table) minorVersion() int {
	var n int
	_, _ = fmt.Sscanf(t.Version, "v1.%d.", &n)
	return n
}

// check is a configuration under check. A zero of a field is the kubelet's default
// (pkg/kubelet/apis/config/v1beta1/defaults.go), which is accepted.
type check struct {
	kubelet  Table
	config   kubeletv1beta1.KubeletConfiguration
	problems []Problem
}

func (c *check) isOn(gate string) bool { return c.kubelet.IsOn(c.config.FeatureGates, gate) }

func (c *check) addProblem(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Fields: []string{field}, Message: fmt.Sprintf(format, args...)})
}

// addConflict is a problem of two fields. The message names both.
func (c *check) addConflict(field, other, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Fields: []string{field, other}, Message: "cannot be used: " + fmt.Sprintf(format, args...),
	})
}

// requireGate adds a problem of a field whose feature gate is off.
func (c *check) requireGate(field, gate string) {
	if !c.isOn(gate) {
		c.addProblem(field, "needs the feature gate %s, which is off", gate)
	}
}

// orElse returns what a pointer points to, or the kubelet's default.
func orElse[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func (c *check) checkNumbers() {
	k := c.config
	for _, n := range []struct {
		field              string
		value, least, most int32
	}{
		{"containerLogMaxFiles", orElse(k.ContainerLogMaxFiles, 5), 2, math.MaxInt32},
		{"containerLogMaxWorkers", orElse(k.ContainerLogMaxWorkers, 1), 1, math.MaxInt32},
		{"eventBurst", k.EventBurst, 0, math.MaxInt32},
		{"eventRecordQPS", orElse(k.EventRecordQPS, 50), 0, math.MaxInt32},
		{"imageGCHighThresholdPercent", orElse(k.ImageGCHighThresholdPercent, 85), 0, 100},
		{"imageGCLowThresholdPercent", orElse(k.ImageGCLowThresholdPercent, 80), 0, 100},
		{"iptablesDropBit", orElse(k.IPTablesDropBit, 15), 0, 31},
		{"iptablesMasqueradeBit", orElse(k.IPTablesMasqueradeBit, 14), 0, 31},
		{"kubeAPIBurst", k.KubeAPIBurst, 0, math.MaxInt32},
		{"kubeAPIQPS", orElse(k.KubeAPIQPS, 50), 0, math.MaxInt32},
		{"maxParallelImagePulls", orElse(k.MaxParallelImagePulls, 1), 1, math.MaxInt32},
		{"maxPods", k.MaxPods, 0, math.MaxInt32},
		{"nodeLeaseDurationSeconds", cmp.Or(k.NodeLeaseDurationSeconds, 40), 1, math.MaxInt32},
		{"nodeStatusMaxImages", orElse(k.NodeStatusMaxImages, 50), -1, math.MaxInt32},
		{"oomScoreAdj", orElse(k.OOMScoreAdj, 0), -1000, 1000},
		{"podsPerCore", k.PodsPerCore, 0, math.MaxInt32},
		{"registryBurst", k.RegistryBurst, 0, math.MaxInt32},
		{"registryPullQPS", orElse(k.RegistryPullQPS, 5), 0, math.MaxInt32},
	} {
		switch {
		case n.value < n.least && n.most == math.MaxInt32:
			c.addProblem(n.field, "%d is less than %d", n.value, n.least)
		case n.value < n.least || n.value > n.most:
			c.addProblem(n.field, "%d is not from %d to %d", n.value, n.least, n.most)
		}
	}
	if k.MaxOpenFiles < 0 {
		c.addProblem("maxOpenFiles", "%d is less than 0", k.MaxOpenFiles)
	}
}

func (c *check) checkChoices() {
	k := c.config
	for _, choice := range []struct{ field, value, choices string }{
		{"configMapAndSecretChangeDetectionStrategy", string(k.ConfigMapAndSecretChangeDetectionStrategy), "Get Cache Watch"},
		{"hairpinMode", k.HairpinMode, "none hairpin-veth promiscuous-bridge"},
		{"logging.format", k.Logging.Format, "text json"},
		{"topologyManagerPolicy", k.TopologyManagerPolicy, "none best-effort restricted single-numa-node"},
		{"topologyManagerScope", k.TopologyManagerScope, "container pod"},
		// A kubelet shows the metrics of one minor version before it (k8s.io/component-base/metrics).
		{"showHiddenMetricsForVersion", k.ShowHiddenMetricsForVersion, fmt.Sprintf("1.%d", c.kubelet.minorVersion()-1)},
	} {
		c.requireChoice(choice.field, choice.value, choice.choices)
	}
}

func (c *check) requireChoice(field, value, choices string) {
	if all := strings.Fields(choices); value != "" && !slices.Contains(all, value) {
		c.addProblem(field, "%q is not one of %s", value, strings.Join(all, ", "))
	}
}

func (c *check) checkTimes() {
	k := c.config
	// The kubelet ends with a period below zero: it makes a ticker of the second, and a limit of time of the third.
	for field, d := range map[string]time.Duration{
		"syncFrequency": k.SyncFrequency.Duration, "fileCheckFrequency": k.FileCheckFrequency.Duration, "runtimeRequestTimeout": k.RuntimeRequestTimeout.Duration,
	} {
		if d < 0 {
			c.addProblem(field, "%s is negative", d)
		}
	}
	if d := k.ContainerLogMonitorInterval; d != nil && d.Duration < 3*time.Second {
		c.addProblem("containerLogMonitorInterval", "%s is less than 3s", d.Duration)
	}
	const wholeQuota = 100 * time.Millisecond
	switch d := k.CPUCFSQuotaPeriod; {
	case d == nil || d.Duration == wholeQuota:
	case !c.isOn("CustomCPUCFSQuotaPeriod"):
		c.requireGate("cpuCFSQuotaPeriod", "CustomCPUCFSQuotaPeriod")
	case d.Duration < time.Millisecond || d.Duration > time.Second:
		c.addProblem("cpuCFSQuotaPeriod", "%s is not from 1ms to 1s", d.Duration)
	}
	c.checkCrashLoop()
}

func (c *check) checkCrashLoop() {
	const field = "crashLoopBackOff.maxContainerRestartPeriod"
	d := c.config.CrashLoopBackOff.MaxContainerRestartPeriod
	if d == nil {
		return
	}
	// The kubelet compares whole milliseconds.
	if ms := d.Milliseconds(); c.isOn("KubeletCrashLoopBackOffMax") && (ms < 1000 || ms > 300000) {
		c.addProblem(field, "%s is not from 1s to 300s", d.Duration)
	}
	c.requireGate(field, "KubeletCrashLoopBackOffMax")
}

// checkShutdown is about the periods of a shutdown, which kubelets on Windows use or not.
func (c *check) checkShutdown() {
	const byPriority, gate, gateByPriority = "shutdownGracePeriodByPodPriority", "GracefulNodeShutdown", "GracefulNodeShutdownBasedOnPodPriority"
	period, critical := c.config.ShutdownGracePeriod.Duration, c.config.ShutdownGracePeriodCriticalPods.Duration
	for field, d := range map[string]time.Duration{"shutdownGracePeriod": period, "shutdownGracePeriodCriticalPods": critical} {
		switch {
		case d > 0 && !c.isOn(gate):
			c.requireGate(field, gate)
		case c.isOn(gate) && (d < 0 || d > 0 && d < time.Second):
			c.addProblem(field, "%s is neither 0s nor at least 1s", d)
		}
	}
	if c.isOn(gate) && period >= 0 && critical > period {
		c.addProblem("shutdownGracePeriodCriticalPods", "%s is longer than shutdownGracePeriod, %s", critical, period)
	}
	if len(c.config.ShutdownGracePeriodByPodPriority) == 0 {
		return
	}
	if c.isOn(gateByPriority) && (period > 0 || critical > 0) {
		c.addProblem(byPriority, "is set together with shutdownGracePeriod")
	}
	c.requireGate(byPriority, gateByPriority)
}

// checkLogHandlers is about the logs of the host, which oc adm node-logs reads.
func (c *check) checkLogHandlers() {
	if !orElse(c.config.EnableSystemLogQuery, false) {
		return
	}
	if !orElse(c.config.EnableSystemLogHandler, true) {
		c.addConflict(
			"enableSystemLogHandler", "enableSystemLogQuery",
			"enableSystemLogQuery needs enableSystemLogHandler, which is false",
		)
	}
	if !c.isOn("NodeLogQuery") {
		c.addConflict(
			"featureGates.NodeLogQuery", "enableSystemLogQuery",
			"enableSystemLogQuery needs the feature gate NodeLogQuery, which is off",
		)
	}
}
