package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
)

// crioProvider is what the machine-config-operator adds to the file of the cloud for a CRIOCredentialProviderConfig, about which there is
// a finding of its own.
const crioProvider = "crio-credential-provider"

// credentialProvider returns the cluster's configuration with ".exe" added to the names of the programs; nothing if there is none for Windows
// nodes. The kubelet would find a program without it too (os/exec.LookPath), and ends at its start if there is no such program
// (k8s.io/kubernetes/pkg/credentialprovider/plugin, RegisterCredentialProviderPlugins): the others are left out.
func (c Cluster) credentialProvider() ([]byte, error) {
	config, err := decodeProviders(c.Machine.CredentialProvider)
	if err != nil {
		return nil, err
	}
	config.Providers = slices.DeleteFunc(config.Providers, func(p kubeletv1.CredentialProvider) bool { return programOf(p) != providerProgram() })
	if len(config.Providers) == 0 {
		return nil, nil
	}
	for i, p := range config.Providers {
		config.Providers[i].Name = programOf(p)
	}
	return encodeConfig(config, kubeletv1.CredentialProviderConfig{})
}

func decodeProviders(text string) (kubeletv1.CredentialProviderConfig, error) {
	var config kubeletv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return config, fmt.Errorf("reading credential provider configuration: %w", err)
	}
	return config, nil
}

// providerProgram is the file name of the one program that Windows nodes have.
func providerProgram() string { return bundle.Base(payload.Find(payload.ECRProvider).Path) }

// isProgramName reports whether a provider can have the name: the kubelet runs the program of this name in its folder.
func isProgramName(name string) bool {
	return bundle.CheckName(name) == nil && !strings.Contains(name, " ")
}

func programOf(p kubeletv1.CredentialProvider) string {
	return strings.TrimSuffix(p.Name, ".exe") + ".exe"
}

func (e *emitter) hasCredentialProvider() bool {
	r := e.rows[rowCredentialProvider]
	contents, err := e.cluster.credentialProvider()
	return r.applies(e.cluster.Platform, e.stage) && err == nil && contents != nil
}

// checkProviders reports the providers of pull credentials that kubelets on Linux have and those of Windows nodes do not.
func (c Cluster) checkProviders(r *report) {
	files := map[string]string{fileECRProviders: c.Machine.CredentialProvider}
	maps.Copy(files, c.Machine.OtherProviders)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		config, err := decodeProviders(files[name])
		if err != nil {
			continue // it is an error where Windows nodes use the file
		}
		for i, p := range config.Providers {
			used := c.Platform == bundle.PlatformAWS && name == fileECRProviders && programOf(p) == providerProgram()
			if used || p.Name == crioProvider || !isProgramName(p.Name) {
				continue
			}
			r.add(bundle.SeverityInfo, reason.CredentialProviderIgnored, fmt.Sprintf("spec.config.storage.files[%s].providers[%d]", name, i),
				fmt.Sprintf("kubelets of Windows nodes do not run %q: they pull %s without its credentials", p.Name, bundle.JoinFirst(p.MatchImages, 4, ", ", bundle.AndMore)),
				"nothing if no Pod of Windows nodes has such an image; otherwise put credentials for them into the global pull secret, or give the Pods or their ServiceAccount an imagePullSecret")
		}
	}
}
