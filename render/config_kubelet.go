package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	logsv1 "k8s.io/component-base/logs/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render/kubelets"
)

// mostVerbose is the highest verbosity of logs that settings may set: above it, client-go writes what the API server
// answers, Secrets among it, into the log of the kubelet (k8s.io/client-go/rest, logBody).
const mostVerbose = 7

// decodeKubeletOverride decodes the override into Kubernetes' own type and applies the list of fields that may be set.
// What the kubelet of the nodes does with them is checkKubeletOverride's.
func decodeKubeletOverride(raw json.RawMessage) bundle.Findings {
	if len(raw) == 0 {
		return nil
	}
	var config kubeletv1beta1.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(raw, &config)
	if err != nil {
		return bundle.Findings{invalidSetting(
			strings.TrimSuffix("kubelet."+cmp.Or(typeErrorField(err), undecodableField(raw)), "."), "%s",
			wrongType(err),
		)}
	}
	var findings bundle.Findings
	isUnknown := map[string]bool{}
	for _, err := range strict {
		findings = append(findings, invalidSetting("kubelet."+strictField(err), "is not a field of KubeletConfiguration"))
		isUnknown[listIndex.ReplaceAllString(strictField(err), "")] = true
	}
	var given map[string]any
	if err := json.Unmarshal(raw, &given); err != nil {
		return append(findings, invalidSetting("kubelet", "is not a mapping"))
	}
	for _, path := range unknownFields(given, "", isAllowedKubeletField()) {
		if why := whyNotKubeletField(path); !isUnknown[path] {
			findings = append(findings, bundle.Finding{
				Field: "kubelet." + path, Message: "may not be set: it " + why.about, Fix: why.fix,
			})
		}
	}
	return append(findings, checkVerbosity(config.Logging)...)
}

// undecodableField returns the first field that cannot be decoded. Errors about durations and quantities do not name
// theirs.
func undecodableField(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err != nil || json.Unmarshal(one, new(kubeletv1beta1.KubeletConfiguration)) != nil {
			return name
		}
	}
	return ""
}

// listIndex is the place in a list, as in a[1].b.
var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

func checkVerbosity(logging logsv1.LoggingConfiguration) bundle.Findings {
	var findings bundle.Findings
	check := func(field string, verbosity logsv1.VerbosityLevel) {
		if verbosity > mostVerbose {
			findings = append(
				findings,
				invalidSetting(
					"kubelet.logging."+field, "%d is above %d: Secrets would be in the kubelet's log", verbosity,
					mostVerbose,
				),
			)
		}
	}
	check("verbosity", logging.Verbosity)
	for i, module := range logging.VModule {
		check(fmt.Sprintf("vmodule[%d].verbosity", i), module.Verbosity)
	}
	return findings
}

// checkKubeletOverride holds the override to what the kubelet of the nodes knows, and the whole configuration to its
// rules. An unknown gate stops it; an unknown field is ignored, as the kubelet falls back to lenient decoding
// (k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec).
func (c Cluster) checkKubeletOverride() bundle.Findings {
	if len(c.Settings.Kubelet) == 0 {
		return nil
	}
	var config kubeletv1beta1.KubeletConfiguration
	var given any
	if json.Unmarshal(c.Settings.Kubelet, &config) != nil || json.Unmarshal(c.Settings.Kubelet, &given) != nil {
		return nil // DecodeSettings has refused it
	}
	table := c.kubeletTable()
	var findings bundle.Findings
	for _, path := range unknownFields(given, "", table.Fields) {
		findings = append(
			findings,
			invalidSetting("kubelet."+path, "is not known to kubelet %s, which would ignore it", table.Version),
		)
	}
	findings = append(findings, checkGates(config.FeatureGates, table)...)
	if policy := config.CPUManagerPolicy; policy != "" && policy != "none" && !table.IsOn(config.FeatureGates, gateWindowsAffinity) {
		findings = append(
			findings,
			invalidSetting(
				"kubelet.cpuManagerPolicy", "has no effect without the feature gate %s, which is off in kubelet %s",
				gateWindowsAffinity, table.Version,
			),
		)
	}
	findings = append(findings, c.checkWholeKubelet()...)
	for i, f := range findings {
		findings[i] = settingsFinding(c.Origins[FromSettings], f.Field, f.Message)
	}
	if !findings.Refused() {
		findings = append(findings, c.checkShutdownUsed(config, c.Origins[FromSettings])...)
	}
	return append(findings, checkEviction(config, c.Origins[FromSettings])...)
}

// checkWholeKubelet returns what the kubelet would end with, of the rendered configuration with the override on top.
func (c Cluster) checkWholeKubelet() bundle.Findings {
	config, err := c.mergedKubelet(bundle.StageJoined)
	if err != nil {
		return nil // DecodeSettings has refused it
	}
	var findings bundle.Findings
	for _, p := range c.kubeletTable().Check(config) {
		field := p.Fields[0]
		if i := slices.IndexFunc(p.Fields, func(f string) bool { top, _, _ := strings.Cut(f, "."); return c.overridesKubelet(top) }); i >= 0 {
			field = p.Fields[i]
		}
		findings = append(findings, invalidSetting("kubelet."+field, "%s: the kubelet would not start", p.Message))
	}
	return findings
}

// checkEviction returns a finding for an evictionHard without one of the default thresholds: the map replaces ours as a
// whole. A kubelet that has mergeDefaultEvictionSettings adds missing thresholds if that is set.
func checkEviction(config kubeletv1beta1.KubeletConfiguration, settings bundle.Ref) bundle.Findings {
	if config.EvictionHard == nil || config.MergeDefaultEvictionSettings != nil && *config.MergeDefaultEvictionSettings {
		return nil
	}
	var missing, whole []string
	for _, signal := range slices.Sorted(maps.Keys(evictionHard())) {
		if _, given := config.EvictionHard[signal]; !given {
			missing = append(missing, signal)
			whole = append(whole, signal+": "+evictionHard()[signal])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	f := settingsFinding(
		settings, "kubelet.evictionHard",
		fmt.Sprintf("has no %s, so the kubelet does not evict Pods when it runs short", strings.Join(missing, " and no ")),
	)
	f.Severity, f.Reason, f.Fix = bundle.SeverityWarning, reason.EvictionThresholdMissing, "add "+
		strings.Join(whole, ", ")+", the kubelet's defaults for Windows; an evictionHard replaces all of them"
	return bundle.Findings{f}
}

// unknownFields returns the paths of a JSON value that a kubelet does not know, sorted. Below a field without fields of
// its own, such as a map of feature gates, everything is known.
func unknownFields(value any, path string, known map[string]bool) []string {
	switch v := value.(type) {
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, unknownFields(x, path, known)...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	case map[string]any:
		if path != "" && !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool {
			return strings.HasPrefix(k, path)
		}) {
			return nil
		}
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !known[path+name] {
				all = append(all, path+name)
				continue
			}
			all = append(all, unknownFields(v[name], path+name+".", known)...)
		}
		return all
	}
	return nil
}

// gateWindowsAffinity has a kubelet on Windows give processors and memory to containers as the policies say
// (k8s.io/kubernetes/pkg/kubelet/cm, container_manager_windows.go).
const gateWindowsAffinity = "WindowsCPUAndMemoryAffinity"

// checkGates applies the kubelet's own rules for feature gates, and refuses the one that lets Pods run commands as SYSTEM
// (gitRepo volumes: k8s.io/kubernetes/pkg/volume/git_repo, CVE-2024-10220). The kubelet does not start with a gate that
// it does not know, with a locked gate of the other value, or with a gate that is on while one that it needs is off.
func checkGates(gates map[string]bool, kubelet kubelets.Table) bundle.Findings {
	var findings bundle.Findings
	bad := func(name, format string, args ...any) {
		findings = append(findings, invalidSetting("kubelet.featureGates."+name, format+": the kubelet would not start", args...))
	}
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		switch gate, known := kubelet.Gates[name]; {
		case !known:
			bad(name, "is not a feature gate of kubelet %s", kubelet.Version)
		case name == "AllAlpha" || name == "AllBeta":
			findings = append(
				findings,
				invalidSetting("kubelet.featureGates."+name, "turns on gates that are not named: name each gate"),
			)
		case gate.Locked && gate.Default != gates[name]:
			bad(name, "is locked to %t", gate.Default)
		case name == "RotateKubeletServerCertificate" && !gates[name]:
			bad(name, "is off, and serverTLSBootstrap needs it")
		case name == "GitRepoVolumeDriver" && gates[name]:
			findings = append(
				findings,
				invalidSetting("kubelet.featureGates."+name, "has whoever makes a Pod run git as SYSTEM on the node"),
			)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kubelet.Gates)) {
		for _, needed := range kubelet.Gates[name].Needs {
			if kubelet.IsOn(gates, name) && !kubelet.IsOn(gates, needed) {
				bad(name, "is on and needs %s, which is off", needed)
			}
		}
	}
	return findings
}
