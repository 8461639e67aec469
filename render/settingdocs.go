package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"wmco/render/mirrors"
)

// SettingDoc explains one setting.
type SettingDoc struct {
	// Name is its path in config.yaml, such as rollout.maxUnavailable.
	Name string `json:"name"`
	// Default is what holds without it, as JSON; null for none.
	Default json.RawMessage `json:"default"`
	// Meaning is one clause, in markdown.
	Meaning string `json:"meaning"`
	// Values are all that it can have, if those are few.
	Values []string `json:"values,omitempty"`
}

// settingMeanings are the settings as docs/settings.md explains them, which a test compares.
func settingMeanings() []SettingDoc {
	return []SettingDoc{
		{Name: "rollout.maxUnavailable", Meaning: "nodes that may be unavailable at once, a number or a percentage up to 100%"},
		{Name: "rollout.maxParallel", Meaning: "nodes that may change at once when no drain is needed"},
		{Name: "rollout.paused", Meaning: "no new node updates start"},
		{Name: "rollout.canaries", Meaning: "canaries: nodes that must be updated and healthy before other nodes start"},
		{Name: "rollout.failureLimit", Meaning: "number of failed nodes at which the rollout stops"},
		{Name: "rollout.settle", Meaning: "how long a canary must stay healthy before other nodes follow, up to 24h; 0s does not wait"},
		{Name: "rollout.nodeTimeout", Meaning: "time limit on one node for a drain, and again for the change with its reboot, from 5m to 24h"},
		{Name: "rollout.windows", Meaning: "when changes may start on nodes: a list of `start` (a cron expression), `duration`, `timeZone` and `impacts` ([maintenance windows](rollouts.md#maintenance-windows)); at any time without one"},
		{Name: "rollout.fetchNodes", Meaning: "nodes that may fetch executables at once"},
		{Name: "rollout.fetchRate", Meaning: "limit of each in bytes per second, from 16Ki, such as `10Mi`; `\"0\"` is no limit"},
		{Name: "logs.size", Meaning: "size at which a log is rotated, a whole number of bytes from 1Mi to 1Pi, such as `1.5Gi`; `\"0\"` turns rotation off"},
		{Name: "logs.files", Meaning: "rotated files to keep, 1 to 1000"},
		{Name: "logs.age", Meaning: "how long to keep a rotated file, in days or as a duration of whole seconds, up to 99999d; `\"0\"` keeps it forever"},
		{Name: "logs.flushInterval", Meaning: "how often kube-log-runner flushes its output, up to 1h"},
		{Name: "adoption", Meaning: "nodes of the existing operator: `Manual` adopts those that you ask for, `Rollout` adopts all of them by rollout ([takeover.md](takeover.md))", Values: []string{string(AdoptionManual), string(AdoptionRollout)}},
		{Name: "keys", Meaning: "when a host refuses the key of `cloud-private-key` and its node agent cannot write it: `Rotate` reports it, `Replace` deletes the Machine ([keys.md](keys.md#replace-machines-that-refuse-the-key))", Values: []string{string(KeysRotate), string(KeysReplace)}},
		{Name: "ssh", Meaning: "when the operator logs in: to join hosts, and where node agents [cannot do the work](keys.md#when-the-operator-logs-in) (`JoinAndRescue`), or also to confirm each new key (`Always`)", Values: []string{string(SSHJoinAndRescue), string(SSHAlways)}},
		{Name: "drift", Meaning: "`Repair` restores what was changed by hand, `Report` only reports it", Values: []string{string(DriftRepair), string(DriftReport)}},
		{Name: "windowsReboots", Meaning: "reboots that Windows itself needs, such as after updates: `Report` lists the nodes, `Ignore` does not, `Coordinate` drains and reboots them as `rollout` allows ([windows-updates.md](windows-updates.md#reboots-that-windows-needs))", Values: []string{string(WindowsRebootsReport), string(WindowsRebootsIgnore), string(WindowsRebootsCoordinate)}},
		{Name: "mirrors.partialNever", Meaning: "if `NeverContactSource` applies to some repositories of a registry but not to all, the whole registry is `Closed`, or left `Open`", Values: []string{"Closed", "Open"}},
		{Name: "mirrors.mode", Meaning: "what containerd's hosts files cannot express is left out with a finding (`HostsFiles`), or goes through a gateway on each node (`Exact`, [mirrors.md](mirrors.md#exact-mirrors))", Values: []string{string(mirrors.HostsFiles), string(mirrors.Exact)}},
		{Name: "mirrors.gatewayPort", Meaning: "port of that gateway on 127.0.0.1, outside of the ports of Services (30000 to 32767) and below 49152"},
		{Name: "kubernetes.pausedPool", Meaning: "while the MachineConfigPool `worker` is paused, Windows nodes `Wait` at its Kubernetes version, or `Follow` the API server", Values: []string{string(PausedPoolWait), string(PausedPoolFollow)}},
		{Name: "kubelet", Meaning: "fields of KubeletConfiguration ([kubelet fields](settings.md#kubelet-fields)); each field given replaces the rendered one as a whole"},
		{Name: "containerd.logLevel", Meaning: "`trace`, `debug`, `info`, `warn`, `error`, `fatal`, `panic`", Values: []string{"trace", "debug", "info", "warn", "error", "fatal", "panic"}},
		{Name: "containerd.maxConcurrentDownloads", Meaning: "layers of one image that are fetched at once, 1 to 100"},
		{Name: "pullSecret", Meaning: "what nodes use the cluster's pull secret for: `Node` for all images, as Linux nodes, `MirrorsOnly` for mirrors and pinned images ([workloads.md](workloads.md#private-images))", Values: []string{string(PullSecretNode), string(PullSecretMirrorsOnly)}},
		{Name: "pauseImage", Meaning: "image of the pod sandbox, with a tag or digest"},
		{Name: "executables.from", Meaning: "source of executables: the operator's image (`Registry`), the operator (`SSH`), or the operator where the image fails (`Any`, [upgrades.md](upgrades.md#operator-upgrades))", Values: []string{string(ExecutablesFromAny), string(ExecutablesFromRegistry), string(ExecutablesFromSSH)}},
		{Name: "executables.image", Meaning: "that image by digest, if nodes cannot use the name that the operator was pulled by"},
		{Name: "acceptedFindings", Meaning: "warnings and infos that you accept: a list of `finding`, `object`, `field`, `reason` and `owner` ([accepted findings](held-changes.md#accepted-findings))"},
		{Name: "debug", Meaning: "raises the verbosity of the services"},
	}
}

// SettingDocs explain every setting, with its default.
func SettingDocs() ([]SettingDoc, error) {
	data, err := json.Marshal(DefaultSettings())
	if err != nil {
		return nil, fmt.Errorf("encoding the default settings: %w", err)
	}
	docs := settingMeanings()
	for i, d := range docs {
		docs[i].Default = valueAt(data, strings.Split(d.Name, "."))
	}
	return docs, nil
}

// valueAt returns the JSON at a path; null where there is none.
func valueAt(data json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil || object[name] == nil {
			return json.RawMessage("null")
		}
		data = object[name]
	}
	return data
}
