package render

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpproxy"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/layout"
	"wmco/render/mirrors"
)

// renderNode renders a node of a cluster; the findings are "severity reason field" of those about it.
func renderNode(t *testing.T, c Cluster, n Node) (Bundle, []string) {
	t.Helper()
	b, findings, err := Render(Inputs{Cluster: c, Node: n}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range findings {
		if f.Severity == bundle.SeverityError || f.Reason == reason.CredentialProviderIgnored {
			list = append(list, string(f.Severity)+" "+f.Reason+" "+f.Field)
		}
	}
	return b, list
}

// kubeletFlagsOf returns the flags of the kubelet whose names begin so.
func kubeletFlagsOf(b Bundle, names ...string) []string {
	var list []string
	for _, s := range b.Node.Services {
		for _, a := range s.Argv {
			if s.Name == layout.Kubelet && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(a, "--"+name) }) {
				list = append(list, a)
			}
		}
	}
	return list
}

// TestNamesAndIdentitiesOfHostsInClouds are those that kubelets on Linux take.
func TestNamesAndIdentitiesOfHostsInClouds(t *testing.T) {
	const corp = "--hostname-override=ip-10-0-0-5.corp.example.com"
	const id = "aws:///eu-central-1a/i-0abc"
	for name, c := range map[string]struct {
		platform bundle.Platform
		change   func(*Node)
		flags    []string
		findings []string
	}{
		"a domain with a final dot":         {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName = "ip-10-0-0-5.corp.example.com." }, []string{corp}, nil},
		"two domains":                       {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName = "ip-10-0-0-5.corp.example.com lab.example.com" }, []string{corp}, nil},
		"a domain with upper case":          {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName = "ip-10-0-0-5.Corp.example.com" }, []string{corp}, nil},
		"Google Cloud, a final dot":         {bundle.PlatformGCP, func(n *Node) { n.Facts.MetadataName = "win-a.c.example.internal." }, []string{"--hostname-override=win-a.c.example.internal"}, nil},
		"no name of an instance":            {bundle.PlatformAWS, func(*Node) {}, nil, []string{"error NodeNameUnknown facts.metadataName"}},
		"no name on Google Cloud":           {bundle.PlatformGCP, func(*Node) {}, nil, []string{"error NodeNameUnknown facts.metadataName"}},
		"no name, but that of the Machine":  {bundle.PlatformAWS, func(n *Node) { n.Backing, n.HostNames = BackingMachine, []string{"ip-10-0-0-5.corp.example.com"} }, []string{corp}, nil},
		"no name, but a Node":               {bundle.PlatformAWS, func(n *Node) { n.Name = "ip-10-0-0-5.corp.example.com" }, []string{corp}, nil},
		"a name that is none":               {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName = "a_b" }, nil, []string{"error FactsInvalid facts.metadataName"}},
		"the identity of an instance":       {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.Facts.ProviderID = "a", id }, []string{"--hostname-override=a", "--provider-id=" + id}, nil},
		"the identity of a Machine":         {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.ProviderID = "a", id }, []string{"--hostname-override=a", "--provider-id=" + id}, nil},
		"the Machine knows it better":       {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.ProviderID, n.Facts.ProviderID = "a", id, id+"f" }, []string{"--hostname-override=a", "--provider-id=" + id}, nil},
		"an identity that is none":          {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.Facts.ProviderID = "a", "aws:// --v=9" }, nil, []string{"error FactsInvalid facts.providerID"}},
		"one that fills a Secret":           {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.Facts.ProviderID = "a", id+strings.Repeat("f", 500) }, nil, []string{"error FactsInvalid facts.providerID"}},
		"one in facts without a schema":     {bundle.PlatformAWS, func(n *Node) { n.Facts = bundle.Facts{ProviderID: "%PATH%"} }, nil, []string{"error FactsInvalid facts.providerID"}},
		"one of a Machine that is none":     {bundle.PlatformAWS, func(n *Node) { n.Facts.MetadataName, n.ProviderID = "a", `x"y` }, nil, []string{"error InputInvalid spec.providerID"}},
		"kubelets on Azure get no identity": {bundle.PlatformAzure, func(n *Node) { n.ProviderID = "azure:///subscriptions/a" }, nil, nil},
		"nor on vSphere":                    {bundle.PlatformVSphere, func(n *Node) { n.ProviderID = "vsphere://4210"; n.Facts.DNSSuffix = "example.com" }, []string{"--hostname-override=win-a.example.com"}, nil},
	} {
		n := testNode()
		n.Name, n.Subnet, n.Facts.Networks, n.Facts.Endpoints = "", "", nil, nil
		c.change(&n)
		b, findings := renderNode(t, testCluster(c.platform), n)
		if diff := cmp.Diff(c.flags, kubeletFlagsOf(b, "hostname-override", "provider-id")); diff != "" {
			t.Errorf("%s: flags (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.findings, findings); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}

// TestCredentialProvidersWithoutAProgramAreLeftOut: with one, the kubelet does not start. The others have the paths of Windows.
func TestCredentialProvidersWithoutAProgramAreLeftOut(t *testing.T) {
	provider := func(name, more string) string {
		return "- {name: " + name + ", apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 10m, matchImages: ['r.example.com']" + more + "}\n"
	}
	const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"
	config := func(name string, providers ...string) MachineConfig {
		return MachineConfig{Providers: map[string]string{name + "-credential-provider.yaml": head + strings.Join(providers, "")}}
	}
	managed := func(m MachineConfig) MachineConfig {
		m.Azure = AzureIdentity{Cloud: "AzurePublicCloud", Tenant: "t", Managed: true}
		return m
	}
	ecr, acr, gcr, crio, own := provider("ecr-credential-provider", ""), provider("acr-credential-provider", ", args: [/etc/kubernetes/cloud.conf, --v=2]"),
		provider("gcr-credential-provider", ", args: [get-credentials, --v=3]"), provider("crio-credential-provider", ""), provider("own", "")
	ignored := func(name, field string) []string {
		return []string{"info CredentialProviderIgnored spec.config.storage.files[" + name + "-credential-provider.yaml].providers" + field}
	}
	const acrProgram = `acr-credential-provider.exe`
	for name, c := range map[string]struct {
		platform bundle.Platform
		config   MachineConfig
		programs string
		file     bool
		findings []string
	}{
		"that of AWS":                        {bundle.PlatformAWS, config("ecr", ecr), "ecr-credential-provider.exe", false, nil},
		"with that of CRI-O":                 {bundle.PlatformAWS, config("ecr", ecr, crio), "ecr-credential-provider.exe", false, nil},
		"with one of the user":               {bundle.PlatformAWS, config("ecr", own, ecr), "ecr-credential-provider.exe", false, ignored("ecr", "[0]")},
		"one of the user alone":              {bundle.PlatformAWS, config("ecr", own), "", false, ignored("ecr", "[0]")},
		"with a credential in a variable":    {bundle.PlatformAWS, config("ecr", provider("ecr-credential-provider", ", env: [{name: AWS_SECRET_ACCESS_KEY, value: hunter2}]")), "", false, ignored("ecr", "[0]")},
		"with variables that hold none":      {bundle.PlatformAWS, config("ecr", provider("ecr-credential-provider", ", env: [{name: AWS_PROFILE, value: nodes}]")), "ecr-credential-provider.exe", false, nil},
		"with a file of Linux in a variable": {bundle.PlatformAWS, config("ecr", provider("ecr-credential-provider", ", env: [{name: AWS_CA_BUNDLE, value: /etc/pki/ca.pem}]")), "", false, ignored("ecr", "[0]")},
		"that of Azure":                      {bundle.PlatformAzure, managed(config("acr", acr)), acrProgram + ` C:\k\cloud.conf --v=2`, true, nil},
		"that of Azure, by a flag":           {bundle.PlatformAzure, managed(config("acr", provider("acr-credential-provider", ", args: [--config=/etc/kubernetes/cloud.conf]"))), acrProgram + ` --config=C:\k\cloud.conf`, true, nil},
		"that of Azure without arguments":    {bundle.PlatformAzure, managed(config("acr", provider("acr-credential-provider", ""))), acrProgram, false, nil},
		"with another file of Linux":         {bundle.PlatformAzure, managed(config("acr", provider("acr-credential-provider", ", args: [--ca=/etc/pki/ca.pem]"))), "", false, ignored("acr", "[0]")},
		"with one as a URL":                  {bundle.PlatformAzure, managed(config("acr", provider("acr-credential-provider", ", args: ['file:///etc/kubernetes/cloud.conf']"))), "", false, ignored("acr", "[0]")},
		"without a managed identity":         {bundle.PlatformAzure, config("acr", acr), "", false, ignored("acr", "[0]")},
		"that of Google Cloud":               {bundle.PlatformGCP, config("gcr", gcr), "gcr-credential-provider.exe get-credentials --v=3", false, nil},
		"with the file of Azure":             {bundle.PlatformGCP, managed(config("gcr", provider("gcr-credential-provider", ", args: [/etc/kubernetes/cloud.conf]"))), "", false, ignored("gcr", "[0]")},
		"that of Azure in the file of AWS":   {bundle.PlatformAWS, managed(config("ecr", acr)), "", false, ignored("ecr", "[0]")},
		"that of AWS, elsewhere":             {bundle.PlatformVSphere, config("ecr", ecr), "", false, ignored("ecr", "[0]")},
		"that of Azure on AWS":               {bundle.PlatformAWS, managed(config("acr", acr)), "", false, ignored("acr", "[0]")},
		"no such file, elsewhere":            {bundle.PlatformGCP, MachineConfig{Providers: map[string]string{"acr-credential-provider.yaml": "a"}}, "", false, nil},
	} {
		cluster := testCluster(c.platform)
		cluster.Machine = c.config
		b, findings := renderNode(t, cluster, testNode())
		var programs []string
		hasFile := false
		for _, f := range b.Cluster.Files {
			hasFile = hasFile || f.Path == fileCloudConf
			if f.Path == fileCredentialProvider {
				config, err := decodeProviders(string(f.Content.Data))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range config.Providers {
					programs = append(append(programs, p.Name), p.Args...)
				}
			}
		}
		if got := strings.Join(programs, " "); got != c.programs || hasFile != c.file {
			t.Errorf("%s: providers %q, cloud.conf %v; want %q, %v", name, got, hasFile, c.programs, c.file)
		}
		if cluster.RunsCredentialProvider() != (c.programs != "") {
			t.Errorf("%s: a host is asked for its identity where no provider needs it, or not", name)
		}
		var flags []string
		if c.programs != "" {
			flags = []string{`--image-credential-provider-bin-dir=C:\k`, `--image-credential-provider-config=C:\k\credential-provider-config.yaml`}
		}
		if diff := cmp.Diff(flags, kubeletFlagsOf(b, "image-credential")); diff != "" {
			t.Errorf("%s: flags (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.findings, findings); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoProviderIsAskedForAMirroredRegistry: containerd would send the credentials of the cloud to its mirrors.
func TestNoProviderIsAskedForAMirroredRegistry(t *testing.T) {
	c := testCluster(bundle.PlatformAzure)
	c.Machine.Azure = AzureIdentity{Managed: true}
	c.Machine.Providers = map[string]string{"acr-credential-provider.yaml": `{apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig, providers: [{name: acr-credential-provider,
  apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 10m, matchImages: ["*.azurecr.io", "*.azurecr.cn", "a.azurecr.us/team"]}]}`}
	set := func(source string, to ...string) mirrors.Set {
		return mirrors.Set{Kind: mirrors.DigestSet, Source: source, Mirrors: to}
	}
	for name, x := range map[string]struct {
		sets  []mirrors.Set
		asked string
		found int
	}{
		"no mirrors":                        {nil, "*.azurecr.io *.azurecr.cn a.azurecr.us/team", 0},
		"a registry of the cloud":           {[]mirrors.Set{set("x.azurecr.io/app", "m.example.com/app")}, "*.azurecr.cn a.azurecr.us/team", 1},
		"another part of the registry":      {[]mirrors.Set{set("a.azurecr.us/other", "m.example.com/other")}, "*.azurecr.io *.azurecr.cn", 1},
		"the registry is the mirror itself": {[]mirrors.Set{set("quay.io/app", "x.azurecr.io/app")}, "*.azurecr.io *.azurecr.cn a.azurecr.us/team", 0},
		"all of them":                       {[]mirrors.Set{set("x.azurecr.io", "m.example.com"), set("x.azurecr.cn", "m.example.com"), set("a.azurecr.us", "m.example.com")}, "", 3},
	} {
		c.Mirrors.Sets = x.sets
		b, findings := renderNode(t, c, testNode())
		asked := ""
		for _, f := range b.Cluster.Files {
			if f.Path == fileCredentialProvider {
				config, err := decodeProviders(string(f.Content.Data))
				if err != nil || len(config.Providers) != 1 {
					t.Fatal(config, err)
				}
				asked = strings.Join(config.Providers[0].MatchImages, " ")
			}
		}
		if asked != x.asked || len(findings) != x.found || (asked == "") != (kubeletFlagsOf(b, "image-credential") == nil) {
			t.Errorf("%s: asked for %q, %q, %q; want %q and %d findings", name, asked, findings, kubeletFlagsOf(b, "image-credential"), x.asked, x.found)
		}
	}
}

// TestRoutesToWhatCloudsHaveAtLinkLocalAddresses, as far as the agent of the node knows them.
func TestRoutesToWhatCloudsHaveAtLinkLocalAddresses(t *testing.T) {
	metadata := []string{layout.MetadataRoute}
	for name, c := range map[string]struct {
		platform bundle.Platform
		change   func(*Node)
		cluster  []string
		node     []string
	}{
		"AWS":                      {bundle.PlatformAWS, func(*Node) {}, metadata, layout.AmazonRoutes()},
		"AWS, a host joins":        {bundle.PlatformAWS, func(n *Node) { n.Name, n.Facts.MetadataName = "", "a" }, metadata, nil},
		"AWS, an older agent":      {bundle.PlatformAWS, func(n *Node) { n.NoAmazonRoutes = true }, metadata, nil},
		"AWS, an older one still":  {bundle.PlatformAWS, func(n *Node) { n.OlderAgent = true }, metadata, nil},
		"Google Cloud":             {bundle.PlatformGCP, func(*Node) {}, metadata, nil},
		"a cloud without metadata": {bundle.PlatformVSphere, func(*Node) {}, nil, nil},
	} {
		n := testNode()
		c.change(&n)
		b, _ := renderNode(t, testCluster(c.platform), n)
		destinations := func(l bundle.Layer) []string {
			var list []string
			for _, r := range l.Routes {
				list = append(list, r.Destination)
			}
			return list
		}
		if diff := cmp.Diff([][]string{c.cluster, c.node}, [][]string{destinations(b.Cluster), destinations(b.Node)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestEntriesOfNoProxyThatMatchNothing: an entry is reported exactly where the library of all programs of a node matches nothing with it.
func TestEntriesOfNoProxyThatMatchNothing(t *testing.T) {
	for entry, c := range map[string]struct {
		meant   string
		matches bool
	}{
		"*": {"a.example.com", true}, "a.example.com": {"a.example.com", true}, ".example.com": {"a.example.com", true}, "*.example.com": {"a.example.com", true},
		"a.example.com:443": {"a.example.com", true}, "10.0.0.0/16": {"10.0.1.1", true}, "10.0.1.1": {"10.0.1.1", true}, "10.0.1.1:443": {"10.0.1.1", true},
		"fd00::1": {"[fd00::1]", true}, "[fd00::1]:443": {"[fd00::1]", true}, "fd00::/48": {"[fd00::1]", true}, "localhost": {"localhost", true},
		"metadata.google.internal.": {"metadata.google.internal.", true}, "b_c.example.com": {"b_c.example.com", true}, "svc": {"a.svc", true},
		"10.0.*": {"10.0.1.1", false}, "10.0.": {"10.0.1.1", false}, "10.0": {"10.0.1.1", false}, "10.0.1.1-10.0.1.9": {"10.0.1.1", false}, "10.0.0.0/33": {"10.0.1.1", false},
		"a.example.com;b.example.com": {"b.example.com", false}, "a.example.com b.example.com": {"b.example.com", false}, "https://a.example.com": {"a.example.com", false},
		"a.*.com": {"a.example.com", false}, "[fd00::1]": {"[fd00::1]", false}, "a.example.com:https": {"a.example.com", false}, "a.example.com/x": {"a.example.com", false},
	} {
		library := httpproxy.Config{HTTPSProxy: "http://proxy.example.com", NoProxy: entry}
		proxy, err := library.ProxyFunc()(&url.URL{Scheme: "https", Host: c.meant})
		if err != nil || (proxy == nil) != c.matches {
			t.Errorf("%q: the library has the proxy %v, %v", entry, proxy, err)
		}
		p := Proxy{HTTPS: bundle.NewSecret("http://proxy.example.com"), NoProxy: "a," + entry + ", .b"}
		var got []string
		for _, f := range p.checkValues(bundle.Ref{}) {
			got = append(got, string(f.Severity)+" "+f.Reason+" "+f.Field)
		}
		var want []string
		if !c.matches {
			want = []string{"warning NoProxyUnmatched status.noProxy"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", entry, diff)
		}
	}
}
