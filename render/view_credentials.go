package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
	"wmco/render/mirrors"
)

// crioProvider is what the machine-config-operator adds to the file of the cloud for a CRIOCredentialProviderConfig,
// about which there is a finding of its own.
const crioProvider = "crio-credential-provider"

// linuxCloudConf is the file of the cloud on Linux nodes, whose place a provider has in its arguments.
const linuxCloudConf = "/etc/kubernetes/cloud.conf"

// cloudProvider returns the file of the MachineConfig that the kubelets of a platform read (machine-config-operator, pkg/controller/template, render.go)
// and the program of its provider that Windows nodes have; empty for platforms without one.
func cloudProvider(p bundle.Platform) (file, program string) {
	switch p { //nolint:exhaustive // the machine-config-operator has none for other platforms
	case bundle.PlatformAWS:
		return "ecr-credential-provider.yaml", payload.ECRProvider
	case bundle.PlatformAzure:
		return "acr-credential-provider.yaml", payload.ACRProvider
	case bundle.PlatformGCP:
		return "gcr-credential-provider.yaml", payload.GCRProvider
	}
	return "", ""
}

// ProviderFile returns the name of the file of credential providers that kubelets of the platform use; empty if there is none.
func ProviderFile(p bundle.Platform) string {
	file, _ := cloudProvider(p)
	return file
}

// providersToRun returns the part of the cluster's configuration that Windows nodes can have, as it is on Linux. Images of registries with mirrors are left
// out: containerd would send the credentials of the cloud to the mirrors too.
func (c Cluster) providersToRun(hosts mirrors.Result) (kubeletv1.CredentialProviderConfig, error) {
	config, err := decodeProviders(c.Machine.Providers[ProviderFile(c.Platform)])
	for i := range config.Providers {
		p := &config.Providers[i]
		p.MatchImages = slices.DeleteFunc(p.MatchImages, func(pattern string) bool { _, mirror := hosts.MirrorFor(pattern); return mirror != "" })
	}
	config.Providers = slices.DeleteFunc(config.Providers, func(p kubeletv1.CredentialProvider) bool { return c.whyNotRun(p) != "" || len(p.MatchImages) == 0 })
	return config, err
}

// RunsCredentialProvider reports whether kubelets of Windows nodes ask a credential provider, which needs the identity of the machine.
func (c Cluster) RunsCredentialProvider() bool {
	config, err := c.providersToRun(c.hostsFiles())
	return err == nil && len(config.Providers) > 0
}

// providerCauses returns the objects with the mirrors because of which images are left out.
func (c Cluster) providerCauses(hosts mirrors.Result) []bundle.Ref {
	var causes []bundle.Ref
	config, _ := decodeProviders(c.Machine.Providers[ProviderFile(c.Platform)])
	for _, p := range config.Providers {
		for _, pattern := range p.MatchImages {
			source, _ := hosts.MirrorFor(pattern)
			causes = append(causes, source.Causes...)
		}
	}
	slices.SortFunc(causes, func(a, b bundle.Ref) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(causes)
}

// checkMirroredProviders reports images for which kubelets ask no credential provider because their registries have mirrors.
func (c Cluster) checkMirroredProviders(hosts mirrors.Result) bundle.Findings {
	r := report{ref: c.Origins[FromMachineConfig]}
	file := ProviderFile(c.Platform)
	config, err := decodeProviders(c.Machine.Providers[file])
	if err != nil {
		return nil // checkProviders has reported it
	}
	for i, p := range config.Providers {
		for k, pattern := range p.MatchImages {
			if source, mirror := hosts.MirrorFor(pattern); mirror != "" && c.whyNotRun(p) == "" {
				r.addFinding(bundle.SeverityInfo, reason.CredentialProviderIgnored, fmt.Sprintf("%s.providers[%d].matchImages[%d]", providerField(file), i, k),
					fmt.Sprintf("kubelets of Windows nodes pull %s without the credentials of %q: containerd would also send them to %s, a mirror of %s", pattern, p.Name, mirror, source.Host),
					"none if Pods on Windows nodes find these images at the mirrors; otherwise put entries for the other registries into the cluster's pull secret, or give the Pods an imagePullSecret")
			}
		}
	}
	return r.findings
}

// credentialProvider returns the cluster's configuration for Windows: ".exe" is added to the names of the programs, and paths are those of Windows. It is
// nothing if there is none for Windows nodes. The kubelet would find a program without ".exe" too (os/exec.LookPath), and ends at its start if there is no
// such program (k8s.io/kubernetes/pkg/credentialprovider/plugin, RegisterCredentialProviderPlugins): the others are left out.
func (c Cluster) credentialProvider(hosts mirrors.Result) ([]byte, error) {
	config, err := c.providersToRun(hosts)
	if err != nil || len(config.Providers) == 0 {
		return nil, err
	}
	for i, p := range config.Providers {
		config.Providers[i].Name, config.Providers[i].Args = programOf(p), windowsArguments(p.Args)
	}
	return encodeConfig(config, kubeletv1.CredentialProviderConfig{})
}

// whyNotRun returns why kubelets of Windows nodes do not run a provider of their platform's file; empty if they do. It shows no value of a
// variable.
func (c Cluster) whyNotRun(p kubeletv1.CredentialProvider) string {
	if _, program := cloudProvider(c.Platform); program == "" || programOf(p) != bundle.Base(payload.Find(program).Path) {
		return "they have no such program"
	}
	for _, a := range p.Args {
		switch path := linuxPath(a); {
		case path == "":
		case path != linuxCloudConf || c.Platform != bundle.PlatformAzure:
			return fmt.Sprintf("its argument %q is a file of Linux nodes", a)
		case !c.Machine.Azure.Managed:
			return linuxCloudConf + " has no managed identity (useManagedIdentityExtension), and hosts get none of its secrets"
		}
	}
	for _, v := range p.Env {
		switch assigned := v.Name + "=" + v.Value; {
		case linuxPath(v.Value) != "":
			return fmt.Sprintf("its variable %q is a file of Linux nodes", v.Name)
		case bundle.MaskLog(assigned) != assigned:
			return fmt.Sprintf("its variable %q is a credential: all users of a host and readers of a preview could read it", v.Name)
		}
	}
	return ""
}

// linuxPath returns the absolute path of Linux in an argument, with or without the name of a flag; empty if there is none.
func linuxPath(argument string) string {
	if _, value, ok := strings.Cut(argument, "="); ok && strings.HasPrefix(argument, "-") {
		argument = value
	}
	if !strings.HasPrefix(strings.TrimPrefix(argument, "file://"), "/") {
		return ""
	}
	return argument
}

// windowsArguments returns the arguments of a provider that whyNotRun has let pass.
func windowsArguments(args []string) []string {
	var list []string
	for _, a := range args {
		list = append(list, strings.TrimSuffix(a, linuxPath(a))+strings.Replace(linuxPath(a), linuxCloudConf, fileCloudConf, 1))
	}
	return list
}

// cloudConf returns the file that a provider of Azure has in its arguments; nothing if none has.
func (c Cluster) cloudConf(hosts mirrors.Result) ([]byte, error) {
	config, err := c.providersToRun(hosts)
	if err != nil || !slices.ContainsFunc(config.Providers, func(p kubeletv1.CredentialProvider) bool {
		return slices.ContainsFunc(p.Args, func(a string) bool { return linuxPath(a) == linuxCloudConf })
	}) {
		return nil, err
	}
	text, err := json.MarshalIndent(c.Machine.Azure, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", fileCloudConf, err)
	}
	return append(text, '\n'), nil
}

func decodeProviders(text string) (kubeletv1.CredentialProviderConfig, error) {
	var config kubeletv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return config, fmt.Errorf("reading credential provider configuration: %w", err)
	}
	return config, nil
}

// isProgramName reports whether a provider can have the name: the kubelet runs the program of this name in its folder.
func isProgramName(name string) bool {
	return bundle.CheckName(name) == nil && !strings.Contains(name, " ")
}

func programOf(p kubeletv1.CredentialProvider) string {
	return strings.TrimSuffix(p.Name, ".exe") + ".exe"
}

func (e *emitter) hasCredentialProvider() bool {
	r := e.rows[rowCredentialProvider]
	contents, err := e.cluster.credentialProvider(e.hosts)
	return r.appliesTo(e.cluster.Platform, e.stage) && err == nil && contents != nil
}

func providerField(file string) string { return "spec.config.storage.files[" + file + "]" }

// checkProviders reports the providers of pull credentials that kubelets on Linux have and those of Windows nodes do
// not. What is wrong with the file that Windows nodes use is an error.
func (c Cluster) checkProviders(r *report) {
	own := ProviderFile(c.Platform)
	for _, name := range slices.Sorted(maps.Keys(c.Machine.Providers)) {
		config, err := decodeProviders(c.Machine.Providers[name])
		if err != nil && name == own {
			r.addFinding(bundle.SeverityError, reason.InputInvalid, providerField(name), fmt.Sprintf("is not a CredentialProviderConfig: %v", err), "correct the MachineConfig that the file comes from")
		}
		for i, p := range config.Providers {
			field := fmt.Sprintf("%s.providers[%d]", providerField(name), i)
			why := c.whyNotRun(p)
			if name != own {
				why = "their platform has no such provider"
			}
			switch {
			case p.Name == crioProvider:
			case !isProgramName(p.Name) && name == own:
				r.addFinding(bundle.SeverityError, reason.InputInvalid, field+".name", fmt.Sprintf("%q cannot be the name of a program", p.Name), "name a program in the kubelet's folder, without a path")
			case why != "" && isProgramName(p.Name):
				r.addFinding(bundle.SeverityInfo, reason.CredentialProviderIgnored, field,
					fmt.Sprintf("kubelets of Windows nodes do not run %q, because %s: they pull %s without its credentials", p.Name, why, bundle.JoinFirst(p.MatchImages, 4, ", ", bundle.AndMore)),
					"none if no Pod on Windows nodes uses such an image; otherwise put credentials for these registries into the cluster's pull secret, or give the Pods or their ServiceAccount an imagePullSecret")
			}
		}
	}
}
