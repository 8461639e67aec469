package kubelets

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// signals are what an eviction can depend on (pkg/kubelet/eviction/api).
const signals = "memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree " +
	"containerfs.available containerfs.inodesFree pid.available allocatableMemory.available"

// checkEviction applies the rules of the parser of thresholds (pkg/kubelet/eviction/helpers.go, ParseThresholdConfig).
func (c *check) checkEviction() {
	k := c.config
	c.checkSignals("evictionHard", k.EvictionHard, whyNotThreshold)
	c.checkSignals("evictionSoft", k.EvictionSoft, whyNotThreshold)
	c.checkSignals("evictionSoftGracePeriod", k.EvictionSoftGracePeriod, whyNotPeriod)
	c.checkSignals("evictionMinimumReclaim", k.EvictionMinimumReclaim, whyNotReclaim)
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoft)) {
		if _, given := k.EvictionSoftGracePeriod[signal]; !given && !isIgnored(k.EvictionSoft[signal]) {
			c.addProblem("evictionSoft."+signal, "has no period in evictionSoftGracePeriod")
		}
	}
}

// checkSignals adds a problem for each entry that is not about a signal, or whose value is refused.
func (c *check) checkSignals(field string, values map[string]string, whyNot func(string) string) {
	for _, signal := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(strings.Fields(signals), signal) {
			c.addProblem(
				field+"."+signal, "is not a signal of an eviction: these are %s",
				strings.Join(strings.Fields(signals), ", "),
			)
		} else if why := whyNot(values[signal]); why != "" {
			c.addProblem(field+"."+signal, "%q %s", values[signal], why)
		}
	}
}

// isIgnored reports whether the kubelet passes over a threshold.
func isIgnored(value string) bool { return value == "0%" || value == "100%" }

func whyNotThreshold(value string) string {
	if isIgnored(value) {
		return ""
	}
	if strings.HasSuffix(value, "%") {
		if part, ok := percentage(value); !ok || part < 0 || part > 1 {
			return "is not a percentage from 0% to 100%"
		}
		return ""
	}
	if q, err := resource.ParseQuantity(value); err != nil || q.Sign() <= 0 {
		return "is neither a quantity above zero nor a percentage"
	}
	return ""
}

func whyNotPeriod(value string) string {
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		return "is not a duration such as 1m30s"
	}
	return ""
}

func whyNotReclaim(value string) string {
	if strings.HasSuffix(value, "%") {
		if part, ok := percentage(value); !ok || part <= 0 {
			return "is not a percentage above 0%"
		}
		return ""
	}
	if q, err := resource.ParseQuantity(value); err != nil || q.Sign() < 0 {
		return "is neither a quantity nor a percentage"
	}
	return ""
}

// percentage returns the part of 1, with the precision of the kubelet.
func percentage(value string) (float32, bool) {
	n, err := strconv.ParseFloat(strings.TrimRight(value, "%"), 32)
	return float32(n) / 100, err == nil //nolint:mnd // per cent
}

// checkQuantities applies the rules of reserved resources (cmd/kubelet/app/server.go, parseResourceList; pkg/kubelet/cm,
// ParseQOSReserved) and of the size of logs (pkg/kubelet/logs, parseMaxSize).
func (c *check) checkQuantities() {
	for field, reserved := range map[string]map[string]string{
		"systemReserved": c.config.SystemReserved, "kubeReserved": c.config.KubeReserved,
	} {
		for _, name := range slices.Sorted(maps.Keys(reserved)) {
			q, err := resource.ParseQuantity(reserved[name])
			switch {
			case !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name):
				c.addProblem(field+"."+name, "is none of cpu, memory, ephemeral-storage and pid")
			case err != nil || q.Sign() < 0:
				c.addProblem(field+"."+name, "%q is not a quantity such as 500m or 2Gi", reserved[name])
			}
		}
	}
	if size := c.config.ContainerLogMaxSize; size != "" {
		q, err := resource.ParseQuantity(size)
		if _, whole := q.AsInt64(); err != nil || !whole {
			c.addProblem("containerLogMaxSize", "%q is not a quantity of bytes such as 50Mi", size)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.config.QOSReserved)) {
		number, isPercentage := strings.CutSuffix(c.config.QOSReserved[name], "%")
		n, err := strconv.Atoi(strings.TrimRight(number, "%"))
		if name != string(corev1.ResourceMemory) || !isPercentage || err != nil || n < 0 || n > 100 {
			c.addProblem("qosReserved."+name, "is not memory with a percentage from 0%% to 100%%")
		}
	}
}

// checkReservedMemory applies the rules of validation_reserved_memory.go.
func (c *check) checkReservedMemory() {
	type limit struct {
		node int32
		name corev1.ResourceName
	}
	seen := map[limit]bool{}
	for i, r := range c.config.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			field := fmt.Sprintf("reservedMemory[%d].limits.%s", i, name)
			q := r.Limits[name]
			switch {
			case name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
				c.addProblem(field, "is neither memory nor one of huge pages")
			case q.IsZero():
				c.addProblem(field, "is zero")
			case seen[limit{r.NumaNode, name}]:
				c.addProblem(field, "is there twice for NUMA node %d", r.NumaNode)
			}
			seen[limit{r.NumaNode, name}] = true
		}
	}
}
