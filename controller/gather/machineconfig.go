package gather

import (
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/ignition"
	"wmco/controller/gather/objects"
	"wmco/render"
)

// sharedKubeletFlags returns the flags of Linux kubelets that WMCO passes to Windows kubelets.
func sharedKubeletFlags() []string { return []string{"cloud-config", "cloud-provider"} }

// machineConfig reads the kubelet settings of the worker pool's current rendered MachineConfig.
func (g *gatherer) machineConfig() {
	o, ok := g.currentMachineConfig()
	if !ok {
		return
	}
	var mc mcfgv1.MachineConfig
	if !g.decodeObject(o, &mc) {
		return
	}
	g.cluster.Origins[render.FromMachineConfig] = o.Ref
	g.cluster.Pool.Release = mc.Annotations[releaseVersion]
	config, problems := ignition.ParseConfig(mc.Spec.Config.Raw)
	for _, p := range problems {
		g.machineConfigInvalid(p.Field, p.Message)
	}
	if len(problems) > 0 {
		return
	}
	for _, field := range config.Unknown {
		g.addFinding(bundle.SeverityWarning, reason.FieldUnknown, bundle.Finding{
			Object: o.Ref, Field: ignitionField + "." +
				field, Message: "Ignition " + config.Version +
				" has no such field; it is ignored", Fix: "correct the MachineConfig that it comes from",
		})
	}
	g.kubeletUnit(config)
	for _, f := range config.Files {
		g.ignitionFile(f)
	}
}

// releaseVersion is the annotation in which the machine-config-operator notes for which version of the cluster it has
// rendered a MachineConfig.
const releaseVersion = "machineconfiguration.openshift.io/release-image-version"

// ignitionField is the field of a MachineConfig that holds the Ignition configuration.
const ignitionField = "spec.config"

// machineConfigInvalid adds the finding for an invalid field of the Ignition configuration.
func (g *gatherer) machineConfigInvalid(field, message string) {
	g.addFinding(bundle.SeverityError, reason.InputInvalid, bundle.Finding{
		Object: g.cluster.Origins[render.FromMachineConfig], Field: strings.TrimSuffix(ignitionField+"."+
			field, "."), Message: message, Fix: "correct the MachineConfig that it comes from; the machine-config-operator then renders it again",
	})
}

// currentMachineConfig returns the one that the worker pool's nodes have. It may not be the newest: a paused or failed
// pool has newer ones that no node uses.
func (g *gatherer) currentMachineConfig() (objects.Object, bool) {
	if o, ok := g.findObject(place{groupMachineConfig, "MachineConfigPool", "", workerPool}); ok {
		var pool mcfgv1.MachineConfigPool
		if !g.decodeObject(o, &pool) {
			return objects.Object{}, false
		}
		g.cluster.Pool.Paused = pool.Spec.Paused
		if name := pool.Status.Configuration.Name; name != "" {
			mc, ok := g.findObject(place{groupMachineConfig, "MachineConfig", "", name})
			if !ok {
				g.machineConfigMissing(
					bundle.Ref{Kind: "MachineConfig", Name: name},
					"is the current configuration of the worker pool, but is not in the inputs",
				)
			}
			return mc, ok
		}
	}
	return g.newestMachineConfig()
}

func (g *gatherer) machineConfigMissing(ref bundle.Ref, message string) {
	severity := bundle.SeverityError
	if g.cluster.Platform == bundle.PlatformNone {
		// Without a cloud provider, a Windows kubelet needs nothing from it.
		severity = bundle.SeverityWarning
	}
	g.addFinding(severity, reason.InputMissing, bundle.Finding{
		Object: ref, Message: message,
		Fix: "add it: oc get machineconfigpools.machineconfiguration.openshift.io worker -o yaml, and the " +
			"MachineConfig that its status.configuration names",
	})
}

// newestMachineConfig returns the newest one, for inputs without the pool's status.
func (g *gatherer) newestMachineConfig() (objects.Object, bool) {
	var newest objects.Object
	var created time.Time
	for _, o := range g.listObjects(groupMachineConfig, "MachineConfig") {
		var mc mcfgv1.MachineConfig
		if !strings.HasPrefix(o.Name, renderedWorkerPrefix) || !g.decodeObject(o, &mc) {
			continue
		}
		if newest.Name == "" || mc.CreationTimestamp.After(created) {
			newest, created = o, mc.CreationTimestamp.Time
		}
	}
	if newest.Name == "" {
		g.machineConfigMissing(
			bundle.Ref{Kind: "MachineConfigPool", Name: workerPool},
			"neither the pool's current configuration nor any rendered MachineConfig is in the inputs",
		)
		return newest, false
	}
	g.addFinding(bundle.SeverityWarning, reason.MachineConfigGuessed, bundle.Finding{
		Object: newest.Ref, Message: "the worker pool's current configuration is not in the inputs; the newest rendered MachineConfig is used",
		Fix: "add the pool: oc get machineconfigpools.machineconfiguration.openshift.io worker -o yaml",
	})
	return newest, true
}

// kubeletUnit reads the shared flags of kubelet.service and its drop-ins. The last ExecStart applies.
func (g *gatherer) kubeletUnit(config ignition.Config) {
	for _, u := range config.Units {
		if u.Name != unitKubelet {
			continue
		}
		texts := []string{u.Contents}
		for _, d := range u.Dropins {
			texts = append(texts, d.Contents)
		}
		command, err := execStart(texts)
		if err != nil {
			g.machineConfigInvalid("systemd.units["+unitKubelet+"]", err.Error())
			return
		}
		g.cluster.Machine.KubeletFlags = parseNamedFlags(command, sharedKubeletFlags())
	}
}

// execStart returns the last ExecStart, on one line.
func execStart(texts []string) (string, error) {
	command := ""
	for _, text := range texts {
		options, err := unit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			return "", fmt.Errorf("reading the unit: %w", err)
		}
		for _, o := range options {
			if o.Section == "Service" && o.Name == "ExecStart" && strings.TrimSpace(o.Value) != "" {
				command = o.Value
			}
		}
	}
	// DeserializeOptions keeps the backslash and newline of a continued line.
	return strings.ReplaceAll(command, "\\\n", " "), nil
}

// parseNamedFlags reads --name=value and --name value. A flag without a value, which templates may write, is ignored.
func parseNamedFlags(command string, names []string) map[string]string {
	flags := map[string]string{}
	words := strings.Fields(command)
	for i, word := range words {
		name, value, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") {
			continue
		}
		if !assigned && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		value = strings.Trim(value, `"'`)
		for _, wanted := range names {
			if name == wanted && value != "" {
				flags[name] = value
			}
		}
	}
	return flags
}

// ignitionFile reads a file that Windows nodes share with Linux nodes, or that describes Linux nodes. Errors in one that no Windows node
// uses refuse nothing.
func (g *gatherer) ignitionFile(f ignition.File) {
	name, isProvider := strings.CutPrefix(f.Path, dirCredentialProviders)
	own := isProvider && name == render.ProviderFile(g.cluster.Platform)
	if !isProvider && f.Path != fileCloudConf {
		return
	}
	contents, err := f.Contents.DecodeContents()
	field := "storage.files[" + f.Path + "]"
	switch {
	case f.Appends && own:
		g.machineConfigInvalid(field+".append", "appends to a file of the operating system's image, whose contents are not known")
	case err != nil && own:
		g.machineConfigInvalid(field, err.Error())
	case f.Appends || err != nil:
	case isProvider:
		if g.cluster.Machine.Providers == nil {
			g.cluster.Machine.Providers = map[string]string{}
		}
		g.cluster.Machine.Providers[name] = string(contents)
	case g.cluster.Platform == bundle.PlatformAzure:
		// Other clouds put credentials into the file, and no program on a Windows node reads it there. Without an identity in it the provider is left out.
		g.cluster.Machine.Azure, _ = render.ParseAzureIdentity(contents)
	}
}
