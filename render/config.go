package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/layout"
	"wmco/render/mirrors"
)

// The ConfigMap with the operator's settings, and the key in it.
const (
	SettingsConfigMap = "windows-machine-config"
	SettingsKey       = "config.yaml"
)

// InstancesConfigMap is the ConfigMap of the operator's namespace with the instances that are no Machines, by address.
const InstancesConfigMap = "windows-instances"

// PullSecretName is the Secret of PullSecretNamespace with the credentials of registries.
const (
	PullSecretName      = "pull-secret"
	PullSecretNamespace = "openshift-config"
)

// DriftMode is what a node does about drift.
type DriftMode string

const (
	// DriftRepair restores what was changed by hand.
	DriftRepair DriftMode = "Repair"
	// DriftReport only reports it.
	DriftReport DriftMode = "Report"
)

// AdoptionMode is when nodes of the existing operator are adopted.
type AdoptionMode string

const (
	// AdoptionManual adopts the nodes for which a person asks.
	AdoptionManual AdoptionMode = "Manual"
	// AdoptionRollout adopts all of them, as a rollout.
	AdoptionRollout AdoptionMode = "Rollout"
)

// WindowsRebootMode is how the operator treats a boot that Windows itself waits for, such as after its updates.
type WindowsRebootMode string

const (
	// WindowsRebootsReport lists the nodes.
	WindowsRebootsReport WindowsRebootMode = "Report"
	// WindowsRebootsIgnore does nothing.
	WindowsRebootsIgnore WindowsRebootMode = "Ignore"
	// WindowsRebootsCoordinate has the operator drain the nodes and boot their hosts, by the rules of rollouts.
	WindowsRebootsCoordinate WindowsRebootMode = "Coordinate"
)

// PullSecretMode is for what Windows nodes have the cluster's pull secret.
type PullSecretMode string

const (
	// PullSecretNode is for all images that a node pulls, as on Linux nodes.
	PullSecretNode PullSecretMode = "Node"
	// PullSecretMirrorsOnly is for mirrors and pinned images alone.
	PullSecretMirrorsOnly PullSecretMode = "MirrorsOnly"
)

// Settings are the operator's settings. The zero value is not valid: start from DefaultSettings.
type Settings struct {
	Rollout  RolloutSettings `json:"rollout"`
	Logs     LogSettings     `json:"logs"`
	Drift    DriftMode       `json:"drift"`
	Adoption AdoptionMode    `json:"adoption"`
	Keys     KeysMode        `json:"keys"`
	SSH      SSHMode         `json:"ssh"`
	// WindowsReboots is about boots that Windows itself waits for.
	WindowsReboots WindowsRebootMode  `json:"windowsReboots"`
	Mirrors        MirrorSettings     `json:"mirrors"`
	Kubernetes     KubernetesSettings `json:"kubernetes"`
	Kubelet        json.RawMessage    `json:"kubelet,omitempty"`
	Containerd     ContainerdSettings `json:"containerd"`
	// PullSecret is for what nodes have the pull secret.
	PullSecret PullSecretMode `json:"pullSecret"`
	// PauseImage is the image of the pod sandbox.
	PauseImage string `json:"pauseImage"`
	// Executables are about how nodes get executables.
	Executables ExecutableSettings `json:"executables"`
	// AcceptedFindings are warnings and infos that are left as they are.
	AcceptedFindings []AcceptedFinding `json:"acceptedFindings,omitempty"`
	// Debug raises the verbosity of the services; the operator's --debugLogging sets it.
	Debug bool `json:"debug"`
}

// RolloutSettings limit how many nodes change at once.
type RolloutSettings struct {
	// MaxUnavailable is a number or a percentage of the Windows nodes that may be unavailable at once.
	MaxUnavailable intstr.IntOrString `json:"maxUnavailable"`
	// MaxParallel is the number of nodes that change at once when no node has to be drained.
	MaxParallel int  `json:"maxParallel"`
	Paused      bool `json:"paused"`
	// Canaries is the number of nodes that change, and must be confirmed, before the others.
	Canaries int `json:"canaries"`
	// FailureLimit is the number of nodes that may fail before the rollout stops.
	FailureLimit int `json:"failureLimit"`
	// Settle is how long a canary must work before the others follow, such as 2m.
	Settle string `json:"settle"`
	// NodeTimeout is how long the turn of one node may take, its drain or its change and boot, such as 30m.
	NodeTimeout string `json:"nodeTimeout"`
	// FetchNodes is the number of nodes that fetch executables at once.
	FetchNodes int `json:"fetchNodes"`
	// FetchRate is a quantity of bytes per second that one node fetches at most, such as 10Mi; "0" is no limit.
	FetchRate string `json:"fetchRate"`
	// Windows are when changes may begin; without one they may at any time.
	Windows []RolloutWindow `json:"windows,omitempty"`
}

// LogSettings limit the logs of every service.
type LogSettings struct {
	// Size is a quantity of bytes such as 100Mi or 1.5Gi; "0" turns rotation off.
	Size string `json:"size"`
	// Files is the number of rotated files that are kept.
	Files int `json:"files"`
	// Age is how long a rotated file is kept, such as 30d or 720h; "0" is for ever.
	Age string `json:"age"`
	// FlushInterval is how often logs are written out, such as 5s.
	FlushInterval string `json:"flushInterval"`
}

// MirrorSettings are about registry mirrors.
type MirrorSettings struct {
	// PartialNever decides what happens to a registry if NeverContactSource applies to some of its repositories but not to all.
	PartialNever mirrors.PartialNever `json:"partialNever"`
	// Mode is what happens to what hosts files cannot express: it is left out, or goes through the gateway of the node.
	Mode mirrors.Mode `json:"mode"`
	// GatewayPort is the TCP port of the gateway on 127.0.0.1.
	GatewayPort int `json:"gatewayPort"`
}

func (m MirrorSettings) gatewayAddress() string {
	return "127.0.0.1:" + strconv.Itoa(m.GatewayPort)
}

func (m MirrorSettings) checkValues() bundle.Findings {
	var findings bundle.Findings
	if m.PartialNever != mirrors.Closed && m.PartialNever != mirrors.Open {
		findings = append(findings, invalidSetting("mirrors.partialNever", "%q is neither Closed nor Open", m.PartialNever))
	}
	if m.Mode != mirrors.HostsFiles && m.Mode != mirrors.Exact {
		findings = append(findings, invalidSetting("mirrors.mode", "%q is neither HostsFiles nor Exact", m.Mode))
	}
	// Windows gives the ports from 49152 to connections (learn.microsoft.com/windows-server/networking, default dynamic port range), Kubernetes those
	// from 30000 to 32767 to Services (NodePort).
	if m.GatewayPort < 1024 || m.GatewayPort >= 49152 || m.GatewayPort >= 30000 && m.GatewayPort <= 32767 {
		findings = append(findings, invalidSetting("mirrors.gatewayPort", "%d is not from 1024 to 29999 or from 32768 to 49151", m.GatewayPort))
	}
	if i := slices.IndexFunc(layout.Ports(), func(p layout.Port) bool { return p.Number == m.GatewayPort }); i >= 0 {
		findings = append(findings, invalidSetting("mirrors.gatewayPort", "%d is the port of %s", m.GatewayPort, layout.Ports()[i].Service))
	}
	return findings
}

// ContainerdSettings override containerd's configuration.
type ContainerdSettings struct {
	// LogLevel is trace, debug, info, warn, error, fatal or panic.
	LogLevel string `json:"logLevel"`
	// MaxConcurrentDownloads is the number of layers of one image that are fetched at once.
	MaxConcurrentDownloads int `json:"maxConcurrentDownloads"`
}

// DefaultPauseImage is the image that the existing operator's documentation asks users to mirror.
const DefaultPauseImage = "mcr.microsoft.com/oss/kubernetes/pause:3.9"

// releasedPauseImage is the same image by digest. The linker sets it where a release names one (make release
// PAUSE_IMAGE=), which is then in the relatedImages of its OLM bundle too: oc-mirror copies it, and the mirror set that
// it writes, one for digests, holds for it.
var releasedPauseImage string //nolint:gochecknoglobals // the linker sets it

// DefaultSettings returns the settings of a cluster without a windows-machine-config.
func DefaultSettings() Settings {
	return Settings{
		Rollout: RolloutSettings{
			MaxUnavailable: intstr.FromInt32(1), MaxParallel: 20, Canaries: 1, FailureLimit: 1, Settle: "2m",
			NodeTimeout: "30m", FetchNodes: 20, FetchRate: "0",
		},
		Executables:    ExecutableSettings{From: ExecutablesFromAny},
		Logs:           LogSettings{Size: "100Mi", Files: 5, Age: "30d", FlushInterval: "5s"},
		Drift:          DriftRepair,
		Adoption:       AdoptionManual,
		Keys:           KeysRotate,
		SSH:            SSHJoinAndRescue,
		WindowsReboots: WindowsRebootsReport,
		Mirrors:        MirrorSettings{PartialNever: mirrors.Closed, Mode: mirrors.HostsFiles, GatewayPort: 22629},
		Kubernetes:     KubernetesSettings{PausedPool: PausedPoolWait},
		Containerd:     ContainerdSettings{LogLevel: "info", MaxConcurrentDownloads: 3},
		PullSecret:     PullSecretNode,
		PauseImage:     cmp.Or(releasedPauseImage, DefaultPauseImage),
	}
}

// DecodeSettings reads config.yaml strictly over the defaults. Every problem is a finding with its field path. If there
// is one, it returns the findings and the defaults. A ref with an empty name stands for an absent ConfigMap.
func DecodeSettings(text string, ref bundle.Ref) (Settings, bundle.Findings) {
	s := DefaultSettings()
	if ref.Name == "" || strings.TrimSpace(text) == "" {
		return s, nil
	}
	if why := checkSettingsText([]byte(text)); why != "" {
		return s, bundle.Findings{settingsFinding(ref, "", why)}
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return s, bundle.Findings{settingsFinding(ref, "", "is not YAML: "+err.Error())}
	}
	strict, err := kjson.UnmarshalStrict(data, &s)
	if err != nil {
		return DefaultSettings(), bundle.Findings{settingsFinding(ref, typeErrorField(err), wrongType(err))}
	}
	var findings bundle.Findings
	for _, err := range strict {
		findings = append(
			findings,
			settingsFinding(ref, strictField(err), "is not a setting"+bundle.DidYouMean(strictField(err), SettingNames())),
		)
	}
	if findings = append(findings, s.checkValues(ref)...); findings.Refused() {
		return DefaultSettings(), findings
	}
	return s, nil
}

// SettingNames returns every setting by its path, such as rollout.maxUnavailable.
func SettingNames() []string {
	return settingsOf(reflect.TypeFor[Settings](), "")
}

func settingsOf(t reflect.Type, prefix string) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, prefix+name)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[intstr.IntOrString]() {
			all = append(all, settingsOf(f.Type, prefix+name+".")...)
		}
	}
	return all
}

func settingsFinding(ref bundle.Ref, field, message string) bundle.Finding {
	path := `data["` + SettingsKey + `"]`
	if field != "" {
		path += "." + field
	}
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.SettingsInvalid, Object: ref, Field: path,
		Message: strings.TrimSpace(field + " " + message),
		Fix:     "correct the setting; docs/settings.md lists all of them with their defaults",
	}
}

var (
	quotedField = regexp.MustCompile(`field "([^"]+)"`)
	// typeError is the text of a type error of sigs.k8s.io/json, whose type is internal to it.
	typeError = regexp.MustCompile(`cannot unmarshal (\w+).*? into Go (?:struct field \w+\.([\w.]+)|value) of type ([\w.\[\]*]+)`)
)

// strictField returns the path in a strict decoding error of sigs.k8s.io/json, whose text is: unknown field "a.b".
func strictField(err error) string {
	if m := quotedField.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}

func typeErrorField(err error) string {
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return m[2]
	}
	return ""
}

func wrongType(err error) string {
	if m := typeError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("has type %s where %s is wanted", m[1], m[3])
	}
	return "cannot be read: " + err.Error()
}

func (s Settings) checkValues(ref bundle.Ref) bundle.Findings {
	findings := slices.Concat(
		s.Rollout.checkValues(), s.Logs.checkValues(), s.Containerd.checkValues(), s.Mirrors.checkValues(), s.Kubernetes.checkValues(), s.Executables.checkValues(), s.checkLogins(),
		decodeKubeletOverride(s.Kubelet), CheckAccepted(s.AcceptedFindings),
	)
	if s.Drift != DriftRepair && s.Drift != DriftReport {
		findings = append(findings, invalidSetting("drift", "%q is neither Repair nor Report", s.Drift))
	}
	if s.Adoption != AdoptionManual && s.Adoption != AdoptionRollout {
		findings = append(findings, invalidSetting("adoption", "%q is neither Manual nor Rollout", s.Adoption))
	}
	if !slices.Contains([]WindowsRebootMode{
		WindowsRebootsReport, WindowsRebootsIgnore, WindowsRebootsCoordinate,
	}, s.WindowsReboots) {
		findings = append(
			findings,
			invalidSetting("windowsReboots", "%q is none of Report, Ignore and Coordinate", s.WindowsReboots),
		)
	}
	if s.PullSecret != PullSecretNode && s.PullSecret != PullSecretMirrorsOnly {
		findings = append(findings, invalidSetting("pullSecret", "%q is neither Node nor MirrorsOnly", s.PullSecret))
	}
	if err := CheckImage(s.PauseImage); err != nil {
		findings = append(findings, invalidSetting("pauseImage", "%v", err))
	}
	for i := range findings {
		f := settingsFinding(ref, findings[i].Field, findings[i].Message)
		f.Fix = cmp.Or(findings[i].Fix, f.Fix)
		findings[i] = f
	}
	return findings
}

// imageReference is host/path with a tag, a digest or both. containerd does not search registries for a name without a
// host.
var imageReference = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[\w][\w.-]{0,127}(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})$`)

func invalidSetting(field, format string, args ...any) bundle.Finding {
	return bundle.Finding{Field: field, Message: fmt.Sprintf(format, args...)}
}

func (r RolloutSettings) checkValues() bundle.Findings {
	var findings bundle.Findings
	if n, err := intstr.GetScaledValueFromIntOrPercent(&r.MaxUnavailable, 100, true); err != nil || n < 1 ||
		r.MaxUnavailable.Type == intstr.String && n > 100 {
		findings = append(
			findings,
			invalidSetting(
				"rollout.maxUnavailable", "%q is neither a number from 1 nor a percentage from 1%% to 100%%",
				r.MaxUnavailable.String(),
			),
		)
	}
	if r.MaxParallel < 1 {
		findings = append(findings, invalidSetting("rollout.maxParallel", "%d is less than 1", r.MaxParallel))
	}
	if r.Canaries < 0 {
		findings = append(findings, invalidSetting("rollout.canaries", "%d is negative", r.Canaries))
	}
	if r.FailureLimit < 1 {
		findings = append(findings, invalidSetting("rollout.failureLimit", "%d is less than 1", r.FailureLimit))
	}
	if d, err := time.ParseDuration(r.Settle); err != nil || d < 0 || d > maxSettle {
		findings = append(findings, invalidSetting("rollout.settle", "%q is not a duration from 0s to 24h", r.Settle))
	}
	if d, err := time.ParseDuration(r.NodeTimeout); err != nil || d < minNodeTimeout || d > maxNodeTimeout {
		findings = append(findings, invalidSetting("rollout.nodeTimeout", "%q is not a duration from 5m to 24h", r.NodeTimeout))
	}
	if r.FetchNodes < 1 {
		findings = append(findings, invalidSetting("rollout.fetchNodes", "%d is less than 1", r.FetchNodes))
	}
	if _, err := r.fetchBytes(); err != nil {
		findings = append(findings, invalidSetting("rollout.fetchRate", "%q is not 0 or a number of bytes per second from 16Ki to 1Ti", r.FetchRate))
	}
	return append(findings, r.checkWindows()...)
}

// The limits of the times of a rollout. The agent itself waits five minutes for a node to be Ready.
const (
	maxSettle                      = 24 * time.Hour
	minNodeTimeout, maxNodeTimeout = 5 * time.Minute, 24 * time.Hour
)

func (c ContainerdSettings) checkValues() bundle.Findings {
	var findings bundle.Findings
	if !slices.Contains([]string{"trace", "debug", "info", "warn", "error", "fatal", "panic"}, c.LogLevel) {
		findings = append(findings, invalidSetting("containerd.logLevel", "%q is not a log level of containerd", c.LogLevel))
	}
	if c.MaxConcurrentDownloads < 1 || c.MaxConcurrentDownloads > 100 {
		findings = append(
			findings,
			invalidSetting("containerd.maxConcurrentDownloads", "%d is not from 1 to 100", c.MaxConcurrentDownloads),
		)
	}
	return findings
}
