package consumers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kubelet/config/v1"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	"sigs.k8s.io/yaml"
)

// checkCredentialProvider registers the providers of a configuration as the kubelet does at start, with empty programs
// in place of theirs.
func checkCredentialProvider(_ context.Context, contents []byte, o Options) error {
	var config v1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict(contents, &config); err != nil {
		return err
	}
	if config.APIVersion != v1.SchemeGroupVersion.String() {
		return fmt.Errorf("apiVersion %q is not %s", config.APIVersion, v1.SchemeGroupVersion)
	}
	programs, err := os.MkdirTemp(o.Scratch, "")
	if err != nil {
		return err
	}
	// The kubelet panics when a name is registered twice in one process, so every call uses new names.
	suffix := "-" + filepath.Base(programs)
	for i := range config.Providers {
		p := &config.Providers[i]
		p.Name += suffix
		if filepath.Base(p.Name) != p.Name {
			continue // refused below
		}
		if err := os.WriteFile(filepath.Join(programs, p.Name), nil, 0o700); err != nil {
			return err
		}
	}
	renamed, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	file := filepath.Join(programs, "config.yaml")
	if err := os.WriteFile(file, renamed, 0o600); err != nil {
		return err
	}
	return plugin.RegisterCredentialProviderPlugins(file, programs, nil, nil)
}
