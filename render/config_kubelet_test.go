package render

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"wmco/bundle"
	"wmco/render/kubelets"
)

// refusals are the findings about an override of the kubelet's configuration.
func refusals(text string) []string {
	var list []string
	_, findings := DecodeSettings("kubelet: "+text, settingsRef)
	for _, f := range findings {
		list = append(list, string(f.Severity)+" "+f.Message)
	}
	return list
}

// fieldsOfKubelets are the JSON paths of the fields of KubeletConfiguration: of the type that this program has, and of the kubelets of all versions
// that nodes get.
func fieldsOfKubelets(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		// Durations and quantities are texts.
		if typ.Kind() != reflect.Struct || slices.ContainsFunc([]string{"Duration", "Time", "TimeOrMetaDuration", "QuantityValue"}, func(name string) bool { return typ.Name() == name }) {
			return
		}
		for f := range typ.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if options == "inline" || f.Type == reflect.TypeFor[metav1.TypeMeta]() || f.Anonymous && name == "" {
				walk(f.Type, prefix)
				continue
			}
			all[prefix+name] = true
			walk(f.Type, prefix+name+".")
		}
	}
	walk(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), "")
	for minor := range 100 {
		if table, ok := kubelets.Of(fmt.Sprintf("1.%d", minor)); ok {
			maps.Copy(all, table.Fields)
		}
	}
	if len(all) < 150 || !all["authentication.x509.clientCAFile"] || !all["logging.vmodule.filePattern"] {
		t.Fatalf("only %d fields: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	return all
}

// TestEveryFieldOfTheKubeletIsDecided: each field of each version is either one that settings may set, or refused with a reason; so is each field
// of a field that may be set. What a new version of Kubernetes brings belongs into one of the two lists: may it run something, change whom the
// kubelet believes, open a port, or read from elsewhere?
func TestEveryFieldOfTheKubeletIsDecided(t *testing.T) {
	all, allowed := fieldsOfKubelets(t), isAllowedKubeletField()
	refused := map[string]bool{}
	for _, group := range refusedKubeletFields() {
		for name := range strings.FieldsSeq(group.fields) {
			if refused[name] || allowed[name] {
				t.Errorf("%s is in the lists twice", name)
			}
			refused[name] = true
		}
	}
	for path := range all {
		top, _, _ := strings.Cut(path, ".")
		if !allowed[path] && !refused[top] {
			t.Errorf("%s is new: decide whether settings may set it (allowedKubeletFields, refusedKubeletFields)", path)
		}
	}
	for path := range maps.Keys(allowed) {
		if !all[path] {
			t.Errorf("%s may be set, and no kubelet has it", path)
		}
	}
	for name := range refused {
		if !all[name] {
			t.Errorf("%s is refused, and no kubelet has it", name)
		}
	}
}

// TestFieldsThatSettingsMayNotSet: with each of these an override could make every node run what the bundle does not name, accept what it must not,
// or not join. A field that is to be allowed later has to leave this table too.
func TestFieldsThatSettingsMayNotSet(t *testing.T) {
	for why, fields := range map[string]map[string]string{
		"names Pods that run without the API server, so that no admission judges them": {
			"staticPodPath": `'C:\Users\Public'`, "staticPodURL": "http://example.com/pod.yaml", "staticPodURLHeader": "{a: [b]}",
		},
		"names a program that the kubelet starts or obeys": {
			"containerRuntimeEndpoint": "npipe://./pipe/other", "imageServiceEndpoint": "tcp://10.0.0.1:1", "volumePluginDir": `'C:\k\plugins'`,
		},
		"decides whom the kubelet believes, or who it is": {
			"authentication": "{anonymous: {enabled: true}}", "authorization": "{mode: AlwaysAllow}", "providerID": "aws:///i-1", "rotateCertificates": "false",
			"serverTLSBootstrap": "false", "tlsCertFile": `'C:\k\a'`, "tlsPrivateKeyFile": `'C:\k\a'`,
		},
		"is decided for the whole cluster": {"tlsCipherSuites": "[TLS_RSA_WITH_AES_128_CBC_SHA]", "tlsCurvePreferences": "[29]", "tlsMinVersion": "VersionTLS10"},
		"decides which ports the kubelet opens, and for what": {
			"address": "0.0.0.0", "enableDebuggingHandlers": "false", "enableServer": "false", "healthzBindAddress": "0.0.0.0", "healthzPort": "1", "port": "1", "readOnlyPort": "10255",
		},
		"comes from the cluster's network":                                     {"clusterDNS": "[10.0.0.1]", "clusterDomain": "example.com", "podCIDR": "10.0.0.0/8", "resolvConf": "/etc/resolv.conf"},
		"names a folder from which the kubelet deletes what belongs to no Pod": {"podLogsDir": `'C:\k'`},
		"sends what the kubelet does to another computer":                      {"tracing": "{endpoint: 'example.com:4317'}"},
		"is set by the operator: a node would not work with another value": {
			"apiVersion": "kubelet.config.k8s.io/v1beta1", "enableControllerAttachDetach": "false", "enforceNodeAllocatable": "[pods]", "kind": "KubeletConfiguration",
			"registerNode": "false", "registerWithTaints": "[]", "runOnce": "true",
		},
		"is for Linux only": {
			"cgroupDriver": "systemd", "cgroupRoot": "/a", "cgroupsPerQOS": "true", "failSwapOn": "false", "kernelMemcgNotification": "true", "kubeReservedCgroup": "/a", "kubeletCgroups": "/a",
			"makeIPTablesUtilChains": "true", "memoryReservationPolicy": "None", "memorySwap": "{}", "memoryThrottlingFactor": "0.5", "protectKernelDefaults": "true",
			"reservedSystemCPUs": "'0'", "seccompDefault": "true", "singleProcessOOMKill": "true", "systemCgroups": "/a", "systemReservedCgroup": "/a", "userNamespaces": "{}",
		},
	} {
		for field, value := range fields {
			for _, value := range []string{value, "null"} {
				want := []string{"error kubelet." + field + " may not be set: it " + why}
				if diff := cmp.Diff(want, refusals("{"+field+": "+value+"}")); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", field, value, diff)
				}
			}
		}
	}
}

// TestOverridesOfTheKubelet: what may be set needs a value of its type; what no list has is refused.
func TestOverridesOfTheKubelet(t *testing.T) {
	const everything = `{maxPods: 7, systemReserved: {memory: 1Gi}, evictionHard: {memory.available: 1Gi}, podPidsLimit: 100, registryPullQPS: 0, imageGCHighThresholdPercent: 90,
 containerLogMaxSize: 20Mi, nodeStatusUpdateFrequency: 20s, crashLoopBackOff: {maxContainerRestartPeriod: 60s}, reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}],
 shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 10}], enableSystemLogQuery: false, topologyManagerPolicyOptions: {a: b},
 logging: {format: json, flushFrequency: 1s, verbosity: 7, vmodule: [{filePattern: a, verbosity: 7}], options: {json: {infoBufferSize: "1"}, text: {splitStream: true}}}}`
	for text, want := range map[string][]string{
		everything:    nil,
		"{maxPod: 7}": {"error kubelet.maxPod is not a field of KubeletConfiguration"},
		"{StaticPodURL: 'http://example.com', STATICPODPATH: a}": {
			"error kubelet.STATICPODPATH is not a field of KubeletConfiguration", "error kubelet.StaticPodURL is not a field of KubeletConfiguration",
		},
		"{logging: {file: a, vmodule: [{path: b}]}}":                                      {"error kubelet.logging.file is not a field of KubeletConfiguration", "error kubelet.logging.vmodule[0].path is not a field of KubeletConfiguration"},
		"{logging: {verbosity: 8}}":                                                       {"error kubelet.logging.verbosity 8 is above 7: Secrets would be in the kubelet's log"},
		"{logging: {vmodule: [{filePattern: a}, {filePattern: request, verbosity: 10}]}}": {"error kubelet.logging.vmodule[1].verbosity 10 is above 7: Secrets would be in the kubelet's log"},
		"{authentication: {x509: {clientCAFile: 'C:\\a'}}, maxPods: 7}":                   {"error kubelet.authentication may not be set: it decides whom the kubelet believes, or who it is"},
	} {
		got := refusals(text)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestARefusedFieldSaysWhatToDo with the setting's path.
func TestARefusedFieldSaysWhatToDo(t *testing.T) {
	_, findings := DecodeSettings("kubelet: {staticPodURL: 'http://example.com/pod.yaml'}", settingsRef)
	if len(findings) != 1 || findings[0].Field != `data["config.yaml"].kubelet.staticPodURL` || findings[0].Fix != "remove it, and use a DaemonSet" {
		t.Errorf("%+v", findings)
	}
	if got := whyNotKubeletField("newField.part"); got.about == "" || got.fix == "" {
		t.Errorf("a field of a new version is refused with %+v", got)
	}
}

// TestGatesThatSettingsMayNotSet: a gate neither stops the kubelet nor has it run commands of a Pod.
func TestGatesThatSettingsMayNotSet(t *testing.T) {
	for gate, tt := range map[string]struct {
		value bool
		minor string
		want  []string
	}{
		"GitRepoVolumeDriver":            {true, "1.33", []string{"has whoever makes a Pod run git as SYSTEM on the node"}},
		"RotateKubeletServerCertificate": {false, "1.37", []string{"is off, and serverTLSBootstrap needs it: the kubelet would not start"}},
		"AllAlpha":                       {true, "1.37", []string{"turns on gates that are not named: name each gate"}},
		"WindowsGracefulNodeShutdown":    {true, "1.33", nil},
	} {
		table, ok := kubelets.Of(tt.minor)
		if !ok {
			t.Fatalf("no kubelet %s", tt.minor)
		}
		var got []string
		for _, f := range checkGates(map[string]bool{gate: tt.value}, table) {
			got = append(got, f.Message)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", gate, diff)
		}
	}
}

// TestPoliciesForProcessorsNeedTheirGate, without which a kubelet on Windows ignores them.
func TestPoliciesForProcessorsNeedTheirGate(t *testing.T) {
	for text, want := range map[string]string{
		"{cpuManagerPolicy: static}": `data["config.yaml"].kubelet.cpuManagerPolicy`,
		"{cpuManagerPolicy: none}":   "",
		"{cpuManagerPolicy: static, featureGates: {WindowsCPUAndMemoryAffinity: true}}": "",
	} {
		c := testCluster(bundle.PlatformNone)
		settings, findings := DecodeSettings("kubelet: "+text, settingsRef)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		c.Settings = settings
		got := ""
		for _, f := range c.checkKubeletOverride() {
			got += f.Field
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestFieldsOfTheKubeletAreDocumented, in the words of the findings.
func TestFieldsOfTheKubeletAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(group kubeletFields) string {
		var names []string
		for _, name := range slices.Sorted(strings.FieldsSeq(group.fields)) {
			if !strings.Contains(name, ".") {
				names = append(names, "`"+name+"`")
			}
		}
		return "| " + group.about + " | " + strings.Join(names, ", ") + " |\n"
	}
	for _, group := range allowedKubeletFields() { // wmco explain has the others
		if !strings.Contains(string(text), row(group)) {
			t.Errorf("docs/settings.md lacks the row\n%s", row(group))
		}
	}
}

// TestSettingsWithWhichAKubeletEnds are refused with their field. TestRandomSettingsOfTheKubelet has many more, which the kubelets themselves judge; those of a
// gate for Windows alone, of periods below zero and of texts that cannot be decoded are here only.
func TestSettingsWithWhichAKubeletEnds(t *testing.T) {
	const affinityOf = `"featureGates":{"WindowsCPUAndMemoryAffinity":true}`
	for _, tt := range []struct{ version, settings, want string }{
		{"5.0.1", `{"imageGCHighThresholdPercent":70,"imageGCLowThresholdPercent":80}`, "imageGCLowThresholdPercent cannot be used: imageGCLowThresholdPercent 80 is not below imageGCHighThresholdPercent 70"},
		{"5.0.1", `{"imageGCHighThresholdPercent":70}`, "imageGCHighThresholdPercent cannot be used: imageGCLowThresholdPercent 80 is not below imageGCHighThresholdPercent 70"},
		{"5.0.1", `{"imageMaximumGCAge":"1m"}`, "imageMaximumGCAge cannot be used: imageMaximumGCAge 1m0s is not longer than imageMinimumGCAge 2m0s"},
		{"5.0.1", `{"serializeImagePulls":true,"maxParallelImagePulls":5}`, "maxParallelImagePulls cannot be used: maxParallelImagePulls 5 needs serializeImagePulls: false"},
		{"5.0.1", `{"maxParallelImagePulls":5}`, ""},
		{"5.0.1", `{"eventRecordQPS":-1}`, "eventRecordQPS -1 is less than 0"},
		{"5.0.1", `{"evictionSoft":{"memory.available":"1Gi"}}`, "evictionSoft.memory.available has no period in evictionSoftGracePeriod"},
		{"5.0.1", `{"evictionSoft":{"memory.available":"1Gi"},"evictionSoftGracePeriod":{"memory.available":"1m"}}`, ""},
		{"5.0.1", `{"systemReserved":{"memory":"2G i"}}`, `systemReserved.memory "2G i" is not a quantity such as 500m or 2Gi`},
		{"4.18.1", `{"imageMinimumGCAge":"-1s"}`, ""},
		{"5.0.1", `{"imageMinimumGCAge":"-1s"}`, "imageMinimumGCAge -1s is negative"},
		{"4.22.1", `{"enableSystemLogQuery":false,"featureGates":{"NodeLogQuery":false}}`, ""},
		{"4.22.1", `{"featureGates":{"NodeLogQuery":false}}`, "featureGates.NodeLogQuery cannot be used: enableSystemLogQuery needs the feature gate NodeLogQuery, which is off"},
		{"5.0.1", `{"fileCheckFrequency":"-1s"}`, "fileCheckFrequency -1s is negative"},
		{"5.0.1", `{"syncFrequency":"often"}`, `syncFrequency cannot be read: time: invalid duration "often"`},
		{"4.20.1", `{"memoryManagerPolicy":"Static",` + affinityOf + `}`, `memoryManagerPolicy "Static" is not one of None, BestEffort`},
		{"4.20.1", `{"cpuManagerPolicy":"static","systemReserved":{"memory":"2Gi"},` + affinityOf + `}`, "cpuManagerPolicy cannot be used: cpuManagerPolicy: static needs a cpu above zero in systemReserved or kubeReserved"},
		{"4.20.1", `{"cpuManagerPolicy":"static","cpuManagerPolicyOptions":{"full-pcpus-only":"yes"},` + affinityOf + `}`, "cpuManagerPolicyOptions.full-pcpus-only is not an option of the static policy with the value true or false"},
		{"4.20.1", `{"cpuManagerPolicyOptions":{"full-pcpus-only":"true"},` + affinityOf + `}`, "cpuManagerPolicyOptions cannot be used: cpuManagerPolicyOptions needs cpuManagerPolicy: static"},
		{"4.20.1", `{"topologyManagerPolicy":"restricted","topologyManagerPolicyOptions":{"max-allowable-numa-nodes":"7"},` + affinityOf + `}`, `topologyManagerPolicyOptions.max-allowable-numa-nodes "7" is not a number from 8`},
	} {
		c := testCluster(bundle.PlatformNone)
		c.Version = tt.version
		settings, findings := DecodeSettings("kubelet: "+tt.settings, settingsRef)
		if !findings.Refused() {
			c.Settings = settings
			findings = c.checkKubeletOverride()
		}
		var got []string
		for _, f := range findings {
			if f.Severity == bundle.SeverityError {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(f.Message, "kubelet."), ": the kubelet would not start"))
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", tt.version, tt.settings, diff)
		}
	}
}
