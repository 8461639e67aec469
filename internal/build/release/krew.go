package release

import (
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// PluginName is the name of the plugin: kubectl windows.
const PluginName = "windows"

// plugin is a manifest of krew (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
type plugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   pluginObject `json:"metadata"`
	Spec       pluginSpec   `json:"spec"`
}

type pluginObject struct {
	Name string `json:"name"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage,omitempty"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector pluginSelector `json:"selector"`
	URI      string         `json:"uri"`
	SHA256   string         `json:"sha256"`
	Bin      string         `json:"bin"`
	Files    []pluginFile   `json:"files"`
}

type pluginSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type pluginFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Krew returns the manifest with which krew installs the archives of a folder. They are downloaded from below the URL
// base.
func Krew(archives []Archive, dir, base, homepage string) ([]byte, error) {
	p := plugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: pluginObject{PluginName}}
	p.Spec = pluginSpec{
		Homepage: homepage, ShortDescription: "Preview, check and apply Windows nodes",
		Description: "Shows what every Windows node of an OKD or OpenShift cluster should have, what a change would do and why,\nand which nodes have it.\n",
	}
	for _, a := range archives {
		sum, err := sumOf(filepath.Join(dir, a.File()))
		if err != nil {
			return nil, err
		}
		// krew wants versions of the form v1.2.3.
		p.Spec.Version = "v" + trimV(a.Version)
		p.Spec.Platforms = append(p.Spec.Platforms, pluginPlatform{
			Selector: pluginSelector{map[string]string{"os": a.OS, "arch": a.Arch}}, URI: base + "/" + a.File(), SHA256: sum, Bin: a.Executable(),
			Files: []pluginFile{{a.Executable(), "."}, {"LICENSE", "."}},
		})
	}
	return yaml.Marshal(p)
}
