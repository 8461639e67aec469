package desired

import (
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/preflight"
	"wmco/render"
)

// TestHostsAreAskedForTheirIdentity where kubelets run the credential provider of their cloud, for that which the provider asks.
func TestHostsAreAskedForTheirIdentity(t *testing.T) {
	provider := map[string]string{"acr-credential-provider.yaml": `{apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig, providers: [{name: acr-credential-provider,
  apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 10m, matchImages: ["*.azurecr.io"], args: [/etc/kubernetes/cloud.conf]}]}`}
	managed := func(id string) render.MachineConfig {
		return render.MachineConfig{Providers: provider, Azure: render.AzureIdentity{Managed: true, UserAssigned: id}}
	}
	for name, c := range map[string]struct {
		platform bundle.Platform
		machine  render.MachineConfig
		// want is in the URL that is asked; empty for none.
		want string
	}{
		"the identity of the machine":     {bundle.PlatformAzure, managed(""), "/metadata/identity/oauth2/token?api-version"},
		"one of several, by its resource": {bundle.PlatformAzure, managed("/subscriptions/s/worker"), "msi_res_id=%2Fsubscriptions%2Fs%2Fworker"},
		"one of several, by its client":   {bundle.PlatformAzure, managed("1234"), "client_id=1234"},
		"no managed identity":             {bundle.PlatformAzure, render.MachineConfig{Providers: provider}, ""},
		"no provider":                     {bundle.PlatformAzure, render.MachineConfig{}, ""},
		"another platform":                {bundle.PlatformVSphere, managed(""), ""},
	} {
		got := Question(render.Cluster{Platform: c.platform, Machine: c.machine}, render.Node{}).Identity
		if c.want == "" && got != (preflight.Identity{}) || !strings.Contains(got.URL, c.want) {
			t.Errorf("%s: asked for %+v, want %q", name, got, c.want)
		}
	}
}
