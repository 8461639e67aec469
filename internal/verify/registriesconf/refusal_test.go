package registriesconf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	"go.yaml.in/yaml/v2"
)

// refusal returns the first error for which the machine-config-operator refuses all objects, in its words
// (validateRegistriesConfScopes in its pkg/controller/container-runtime-config/helpers.go); empty if it accepts them.
// It follows the rules of that operator and shares no code with render/mirrors: digest sets come first, then content source
// policies, then tag sets; a source has one policy in all of them, even in an entry without mirrors, and no policy is Allow.
func refusal(c cluster) string {
	r := rules{policies: map[string]configv1.MirrorSourcePolicy{}}
	for _, o := range c.digests {
		for _, m := range o.Spec.ImageDigestMirrors {
			r.check(m.Source, texts(m.Mirrors), m.MirrorSourcePolicy)
		}
	}
	for _, o := range c.policies {
		for _, m := range o.Spec.RepositoryDigestMirrors {
			r.check(m.Source, m.Mirrors, "")
		}
	}
	for _, o := range c.tags {
		for _, m := range o.Spec.ImageTagMirrors {
			r.check(m.Source, texts(m.Mirrors), m.MirrorSourcePolicy)
		}
	}
	return r.refusal
}

type rules struct {
	policies map[string]configv1.MirrorSourcePolicy
	refusal  string
}

func (r *rules) check(source string, list []string, policy configv1.MirrorSourcePolicy) {
	if r.refusal == "" {
		r.refusal = r.broken(source, list, policy)
	}
}

func (r *rules) broken(source string, list []string, policy configv1.MirrorSourcePolicy) string {
	if !api().source.MatchString(source) {
		return fmt.Sprintf("invalid format for source %q", source)
	}
	if policy == "" {
		policy = configv1.AllowContactingSource
	}
	// This one is the API server's, not the operator's.
	if !slices.Contains(api().policies, string(policy)) {
		return fmt.Sprintf("%q is not a policy", policy)
	}
	if known, ok := r.policies[source]; ok && known != policy {
		return fmt.Sprintf("conflicting mirrorSourcePolicy is set for the same source %q in imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies", source)
	}
	r.policies[source] = policy
	for _, m := range list {
		if !api().mirror.MatchString(m) {
			return fmt.Sprintf("invalid format for mirror %q", m)
		}
		if m == source && policy == configv1.NeverContactSource {
			return fmt.Sprintf("cannot set mirrorSourcePolicy: NeverContactSource if the source %q is one of the mirrors", source)
		}
	}
	return ""
}

// schema is the API schema of one entry. The machine-config-operator uses the same patterns.
type schema struct {
	source, mirror *regexp.Regexp
	policies       []string
}

// api reads the CRD of ImageDigestMirrorSet in openshift/api; the two other kinds do not differ.
var api = sync.OnceValue(func() schema {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		panic(fmt.Sprintf("looking for openshift/api: %v", err))
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml"))
	if err != nil {
		panic(err)
	}
	var crd any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		panic(err)
	}
	entry := at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "imageDigestMirrors", "items", "properties")
	var policies []string
	for _, p := range at(entry, "mirrorSourcePolicy", "enum").([]any) {
		policies = append(policies, p.(string))
	}
	return schema{
		source:   regexp.MustCompile(at(entry, "source", "pattern").(string)),
		mirror:   regexp.MustCompile(at(entry, "mirrors", "items", "pattern").(string)),
		policies: policies,
	}
})

// at returns the value at a path of keys and indices in a YAML document.
func at(node any, path ...any) any {
	for _, p := range path {
		if i, ok := p.(int); ok {
			node = node.([]any)[i]
			continue
		}
		node = node.(map[any]any)[p]
	}
	return node
}
