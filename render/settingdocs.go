package render

import (
	"encoding/json"
	"fmt"
	"strings"
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

// meanings are the settings as docs/operations.md explains them, which a test compares.
func meanings() []SettingDoc {
	return []SettingDoc{
		{Name: "rollout.maxUnavailable", Meaning: "nodes that may be unavailable at once, a number or a percentage up to 100%"},
		{Name: "rollout.maxParallel", Meaning: "nodes that change at once when none has to be drained"},
		{Name: "rollout.paused", Meaning: "no new node updates start"},
		{Name: "rollout.canaries", Meaning: "nodes that change, and must be confirmed, before the others"},
		{Name: "rollout.failureLimit", Meaning: "nodes that may fail before the rollout stops"},
		{Name: "rollout.settle", Meaning: "how long a canary must work before the others follow, up to 24h; 0s does not wait"},
		{Name: "rollout.nodeTimeout", Meaning: "how long a drain, and after it a change with its boot, may take on one node, from 5m to 24h"},
		{Name: "rollout.windows", Meaning: "when changes may begin on nodes: a list of `start` (a cron expression), `duration`, `timeZone` and `impacts` ([below](#windows-for-changes)); without one at any time"},
		{Name: "logs.size", Meaning: "size at which a log is rotated, a whole number of bytes from 1Mi to 1Pi, such as `1.5Gi`; `\"0\"` turns rotation off"},
		{Name: "logs.files", Meaning: "rotated files that stay, 1 to 1000"},
		{Name: "logs.age", Meaning: "how long a rotated file stays, in days or as a duration of whole seconds, up to 99999d; `\"0\"` keeps it forever"},
		{Name: "logs.flushInterval", Meaning: "how often kube-log-runner writes out, up to 1h"},
		{Name: "adoption", Meaning: "nodes of the existing operator: `Manual` adopts those for which you ask, `Rollout` all of them, one after the other ([takeover.md](takeover.md))", Values: []string{string(AdoptionManual), string(AdoptionRollout)}},
		{Name: "keys", Meaning: "where a host refuses the key of `cloud-private-key` and its node agent cannot write it: `Rotate` says so, `Replace` deletes its Machine ([keys.md](keys.md#replace-machines-that-refuse-the-key))", Values: []string{string(KeysRotate), string(KeysReplace)}},
		{Name: "drift", Meaning: "`Repair` puts back what was changed by hand, `Report` tells", Values: []string{string(DriftRepair), string(DriftReport)}},
		{Name: "windowsReboots", Meaning: "what is done about boots that Windows itself waits for, such as after its updates: `Report` says which nodes ([below](#windows-waits-for-a-boot)), `Ignore` says nothing, `Coordinate` drains and boots them as `rollout` says", Values: []string{string(WindowsRebootsReport), string(WindowsRebootsIgnore), string(WindowsRebootsCoordinate)}},
		{Name: "mirrors.partialNever", Meaning: "a host of which only a part must never be contacted is `Closed` or left `Open`", Values: []string{"Closed", "Open"}},
		{Name: "mirrors.existingPaths", Meaning: "mirrors are also asked where nodes of the existing operator asked"},
		{Name: "kubernetes.pausedPool", Meaning: "while the MachineConfigPool `worker` is paused, Windows nodes `Wait` at its version of Kubernetes, or `Follow` the API server", Values: []string{string(PausedPoolWait), string(PausedPoolFollow)}},
		{Name: "kubelet", Meaning: "fields of KubeletConfiguration ([these](#fields-of-the-kubelet)), laid over the rendered ones: each field given replaces ours as a whole"},
		{Name: "containerd.logLevel", Meaning: "`trace`, `debug`, `info`, `warn`, `error`, `fatal`, `panic`", Values: []string{"trace", "debug", "info", "warn", "error", "fatal", "panic"}},
		{Name: "containerd.maxConcurrentDownloads", Meaning: "layers of one image that are fetched at once, 1 to 100"},
		{Name: "containerd.imagePullProgressTimeout", Meaning: "a pull without progress is given up after this time"},
		{Name: "pullSecret", Meaning: "for what nodes have the cluster's pull secret: `Node` for all images that they pull, as Linux nodes, `MirrorsOnly` for mirrors and pinned images ([workloads.md](workloads.md#private-images))", Values: []string{string(PullSecretNode), string(PullSecretMirrorsOnly)}},
		{Name: "pauseImage", Meaning: "image of the pod sandbox, with a tag or digest"},
		{Name: "acceptedFindings", Meaning: "warnings and infos that are left as they are: a list of `finding`, `object`, `field`, `reason` and `owner` ([below](#accepted-findings))"},
		{Name: "debug", Meaning: "raises the verbosity of the services"},
	}
}

// SettingDocs explain every setting, with its default.
func SettingDocs() ([]SettingDoc, error) {
	data, err := json.Marshal(DefaultSettings())
	if err != nil {
		return nil, fmt.Errorf("encoding the default settings: %w", err)
	}
	docs := meanings()
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
