package gather

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	ignconfig "github.com/coreos/ignition/v2/config/v3_6"
	igntypes "github.com/coreos/ignition/v2/config/v3_6/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"

	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/bundle"
)

// sharedKubeletFlags are the flags of a Linux kubelet that the existing operator hands on to Windows kubelets.
func sharedKubeletFlags() []string { return []string{"cloud-config", "cloud-provider"} }

// maxIgnitionFile bounds what one compressed file of a MachineConfig may unpack to.
const maxIgnitionFile = 4 << 20

// machineConfig reads what the worker pool's current rendered MachineConfig says about kubelets.
func (g *gatherer) machineConfig() {
	o, ok := g.currentMachineConfig()
	if !ok {
		return
	}
	var mc mcfgv1.MachineConfig
	if !g.decode(o, &mc) {
		return
	}
	g.cluster.Origins[render.FromMachineConfig] = o.Ref
	g.cluster.Machine.Name = o.Name
	config, report, err := ignconfig.ParseCompatibleVersion(mc.Spec.Config.Raw)
	if err != nil {
		message := err.Error()
		if report.IsFatal() {
			message += ": " + strings.TrimSpace(report.String())
		}
		g.machineConfigInvalid("spec.config", message)
		return
	}
	g.kubeletUnit(config)
	for _, f := range config.Storage.Files {
		g.ignitionFile(f)
	}
}

func (g *gatherer) machineConfigInvalid(field, message string) {
	g.add(bundle.SeverityError, "InputInvalid", bundle.Finding{
		Object: g.cluster.Origins[render.FromMachineConfig], Field: field, Message: message, Fix: "correct the MachineConfig that it comes from; the machine-config-operator renders it anew",
	})
}

// currentMachineConfig is the one that the worker pool's nodes have, not the newest: a paused or failed pool has newer
// ones that no node runs.
func (g *gatherer) currentMachineConfig() (objects.Object, bool) {
	if o, ok := g.find(place{groupMachineConfig, "MachineConfigPool", "", workerPool}); ok {
		var pool mcfgv1.MachineConfigPool
		if !g.decode(o, &pool) {
			return objects.Object{}, false
		}
		if name := pool.Status.Configuration.Name; name != "" {
			mc, ok := g.find(place{groupMachineConfig, "MachineConfig", "", name})
			if !ok {
				g.machineConfigMissing(bundle.Ref{Kind: "MachineConfig", Name: name}, "is what the worker pool has, and is not in the inputs")
			}
			return mc, ok
		}
	}
	return g.newestMachineConfig()
}

func (g *gatherer) machineConfigMissing(ref bundle.Ref, message string) {
	severity := bundle.SeverityError
	if g.cluster.Platform == render.None {
		// Without a cloud provider there is nothing in it that a Windows kubelet needs.
		severity = bundle.SeverityWarning
	}
	g.add(severity, "InputMissing", bundle.Finding{Object: ref, Message: message, Fix: "add it: oc get machineconfigpools.machineconfiguration.openshift.io worker -o yaml, and the MachineConfig that its status.configuration names"})
}

// newestMachineConfig serves inputs without the pool's status.
func (g *gatherer) newestMachineConfig() (objects.Object, bool) {
	var newest objects.Object
	var created time.Time
	for _, o := range g.all(groupMachineConfig, "MachineConfig") {
		var mc mcfgv1.MachineConfig
		if !g.decode(o, &mc) {
			continue
		}
		if newest.Name == "" || mc.CreationTimestamp.After(created) {
			newest, created = o, mc.CreationTimestamp.Time
		}
	}
	if newest.Name == "" {
		g.machineConfigMissing(bundle.Ref{Kind: "MachineConfigPool", Name: workerPool}, "neither the pool's current configuration nor any rendered MachineConfig is in the inputs")
		return newest, false
	}
	g.add(bundle.SeverityWarning, "MachineConfigGuessed", bundle.Finding{
		Object: newest.Ref, Message: "the worker pool's current configuration is not known; the newest rendered MachineConfig is used",
		Fix: "add the pool: oc get machineconfigpools.machineconfiguration.openshift.io worker -o yaml",
	})
	return newest, true
}

// kubeletUnit takes the shared flags out of kubelet.service and its drop-ins, the last ExecStart of which counts.
func (g *gatherer) kubeletUnit(config igntypes.Config) {
	for _, u := range config.Systemd.Units {
		if u.Name != unitKubelet {
			continue
		}
		texts := []string{deref(u.Contents)}
		for _, d := range u.Dropins {
			texts = append(texts, deref(d.Contents))
		}
		command, err := execStart(texts)
		if err != nil {
			g.machineConfigInvalid("spec.config.systemd.units["+unitKubelet+"]", err.Error())
			return
		}
		g.cluster.Machine.KubeletFlags = pickFlags(command, sharedKubeletFlags())
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
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

// pickFlags reads --name=value and --name value. A flag without a value, as templates leave it, is absent.
func pickFlags(command string, names []string) map[string]string {
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

func (g *gatherer) ignitionFile(f igntypes.File) {
	if f.Path != fileCloudConf && f.Path != fileCredentialProvider {
		return
	}
	field := "spec.config.storage.files[" + f.Path + "]"
	text, err := ignitionContents(f.Contents)
	if err != nil {
		g.machineConfigInvalid(field, err.Error())
		return
	}
	if f.Path == fileCloudConf {
		g.cluster.Machine.CloudConfig = bundle.NewSecret(text)
		return
	}
	g.cluster.Machine.CredentialProvider = text
}

// ignitionContents decodes a data URL, compressed or not. Errors do not hold the contents, which may be secret.
func ignitionContents(r igntypes.Resource) (string, error) {
	if deref(r.Source) == "" {
		return "", nil
	}
	url, err := dataurl.DecodeString(*r.Source)
	if err != nil {
		return "", fmt.Errorf("the contents are not a data URL")
	}
	switch deref(r.Compression) {
	case "":
		return string(url.Data), nil
	case "gzip":
		return gunzip(url.Data)
	}
	return "", fmt.Errorf("compression %q is not known", deref(r.Compression))
}

func gunzip(data []byte) (string, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("the contents are not gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(zr, maxIgnitionFile+1))
	if err != nil {
		return "", fmt.Errorf("unpacking the contents: %w", err)
	}
	if len(out) > maxIgnitionFile {
		return "", fmt.Errorf("the contents unpack to more than %d bytes", maxIgnitionFile)
	}
	return string(out), nil
}
