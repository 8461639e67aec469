package render

import (
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
)

func TestKubeletOverridesReplaceWholeFields(t *testing.T) {
	c := Cluster{Network: Network{ServiceNetworks: []string{"172.30.0.0/16"}}, Settings: DefaultSettings()}
	c.Settings.Kubelet = json.RawMessage(`{"evictionHard":{"memory.available":"1Gi"},"systemReserved":{},"kubeAPIQPS":0}`)
	config, err := c.kubeletConfig(bundle.StageJoined)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"memory.available": "1Gi"}, config.EvictionHard); diff != "" {
		t.Errorf("evictionHard (-want +got):\n%s", diff)
	}
	if len(config.SystemReserved) != 0 || config.KubeAPIQPS == nil || *config.KubeAPIQPS != 0 {
		t.Errorf("systemReserved %v, kubeAPIQPS %v", config.SystemReserved, config.KubeAPIQPS)
	}
}

func TestAnOverrideThatDropsAnEvictionThresholdIsAWarning(t *testing.T) {
	ref := bundle.Ref{Kind: "ConfigMap", Name: "windows-machine-config"}
	for override, want := range map[string]string{
		`{}`: "",
		`{"evictionHard":{"memory.available":"1Gi","nodefs.available":"5%","imagefs.available":"5%"}}`: "",
		`{"evictionHard":{"memory.available":"1Gi","nodefs.available":"5%"}}`:                          "kubelet.evictionHard has no imagefs.available, so the kubelet does not evict Pods when it runs short",
		`{"evictionHard":{}}`: "kubelet.evictionHard has no imagefs.available and no memory.available and no nodefs.available, so the kubelet does not evict Pods when it runs short",
		`{"evictionHard":{"memory.available":"1Gi"},"mergeDefaultEvictionSettings":true}`: "",
	} {
		c := Cluster{Settings: DefaultSettings(), Origins: map[Origin]bundle.Ref{FromSettings: ref}}
		c.Settings.Kubelet = json.RawMessage(override)
		got := ""
		for _, f := range c.checkKubeletOverride() {
			got += f.Message
			if f.Severity != bundle.SeverityWarning || f.Reason != reason.EvictionThresholdMissing || f.Object != ref {
				t.Errorf("%s: %+v", override, f)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", override, got, want)
		}
	}
}

func TestNoSecretIsLeftInAMaskedCluster(t *testing.T) {
	c := Cluster{
		Proxy: Proxy{HTTP: bundle.NewSecret("http://u:hidden@p:1"), HTTPS: bundle.NewSecret("https://u:hid@den@p:1/x")},
	}
	fillSecrets(reflect.ValueOf(&c).Elem(), "hidden")
	c.Proxy = Proxy{HTTP: bundle.NewSecret("http://u:hidden@p:1"), HTTPS: bundle.NewSecret("https://u:hid@hidden@p:1/x")}
	if n := countSecrets(reflect.ValueOf(c.Masked()), "hidden"); n > 0 {
		t.Errorf("%d secrets are left", n)
	}
	if n := countSecrets(reflect.ValueOf(c), "hidden"); n < 5 {
		t.Errorf("the test sees %d secrets only", n)
	}
	if got := c.Masked().Proxy.HTTPS.Reveal(); got != "https://<masked>@p:1/x" {
		t.Errorf("masked URL %s", got)
	}
}

var secretType = reflect.TypeFor[bundle.Secret]()

func fillSecrets(v reflect.Value, text string) {
	if v.Type() == secretType {
		v.Set(reflect.ValueOf(bundle.NewSecret(text)))
		return
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if v.Field(i).CanSet() {
			fillSecrets(v.Field(i), text)
		}
	}
}

func countSecrets(v reflect.Value, text string) int {
	if v.Type() == secretType {
		if s, ok := v.Interface().(bundle.Secret); ok && strings.Contains(s.Reveal(), text) {
			return 1
		}
		return 0
	}
	n := 0
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			n += countSecrets(v.Field(i), text)
		}
	}
	return n
}

func TestNormalizeNoProxy(t *testing.T) {
	tests := map[string]string{
		"":                                    "",
		".cluster.local,.svc,10.0.0.0/16":     ".cluster.local,.svc,10.0.0.0/16",
		" a.example.com , ,b ,a.example.com,": "a.example.com,b",
		"*.example.com,*":                     ".example.com,*",
	}
	for list, want := range tests {
		if got := normalizeNoProxy(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func TestProxyVariablesAreSecretOnlyWithAPassword(t *testing.T) {
	p := Proxy{HTTP: bundle.NewSecret("http://proxy.example.com:3128"), HTTPS: bundle.NewSecret("http://user:p%40ss%25@proxy.example.com:3128"), NoProxy: "a"}
	want := []proxyVariable{
		{"HTTP_PROXY", "http://proxy.example.com:3128", "http://proxy.example.com:3128"},
		{"HTTPS_PROXY", "http://user:p%40ss%25@proxy.example.com:3128", "http://<masked>@proxy.example.com:3128"},
		{"NO_PROXY", "a", "a"},
	}
	if diff := cmp.Diff(want, p.environmentVariables(), cmp.AllowUnexported(proxyVariable{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if findings := p.checkValues(bundle.Ref{}); len(findings) > 0 {
		t.Errorf("findings %+v", findings)
	}
}

func TestParsePEM(t *testing.T) {
	cert := testCertificate
	tests := []struct {
		name, text      string
		certs, problems int
	}{
		{"an empty text", "", 0, 0},
		{"one", cert, 1, 0},
		{"CRLF and comments", "# root\r\n" + strings.ReplaceAll(cert, "\n", "\r\n") + "# end", 1, 0},
		{"no newline at the end", strings.TrimSpace(cert), 1, 0},
		{"twice the same", cert + cert, 1, 0},
		{"a broken one before", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + cert, 1, 1},
		{"an incomplete block", cert[:len(cert)/2], 0, 1},
		{"no PEM at all", "hello", 0, 1},
		{"a key", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", 0, 1},
	}
	for _, test := range tests {
		certs, problems := parsePEM(test.text)
		if len(certs) != test.certs || len(problems) != test.problems {
			t.Errorf("%s: %d certificates, problems %q; want %d and %d", test.name, len(certs), problems, test.certs, test.problems)
		}
	}
}

func TestExporterCiphers(t *testing.T) {
	const rsa, ecdsa, other = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
	for _, tt := range []struct {
		name    string
		profile TLSProfile
		version string
		want    []string
	}{
		{"without suites that Go does not count as secure", TLSProfile{MinVersion: "VersionTLS10", Ciphers: []string{rsa, "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"}}, "TLS10", []string{"TLS_AES_128_GCM_SHA256", rsa}},
		{"the RSA suite that HTTP/2 requires", TLSProfile{MinVersion: "VersionTLS12", Ciphers: []string{other, rsa}}, "TLS12", []string{rsa, other}},
		{"the ECDSA suite that HTTP/2 requires", TLSProfile{MinVersion: "VersionTLS12", Ciphers: []string{other, ecdsa}}, "TLS12", []string{ecdsa, other}},
		{"without a suite that HTTP/2 requires", TLSProfile{MinVersion: "VersionTLS12", Ciphers: []string{other}}, "TLS12", nil},
		{"TLS 1.3 has no choice of suites", TLSProfile{MinVersion: "VersionTLS13", Ciphers: []string{rsa}}, "TLS13", nil},
	} {
		if diff := cmp.Diff(tt.want, tt.profile.exporterCiphers()); diff != "" || tt.profile.exporterVersion() != tt.version {
			t.Errorf("%s: %s (-want +got):\n%s", tt.name, tt.profile.exporterVersion(), diff)
		}
	}
}

func TestHostNameOverrideOfEachPlatform(t *testing.T) {
	machine := Node{Backing: BackingMachine, MachineName: "winwk-a", HostNames: []string{"from.machine"}}
	facts := func(n Node, f bundle.Facts) Node { n.Facts = f; return n }
	named := func(n Node) Node { n.Name = "old"; return n }
	long := strings.Repeat("a", 40) + "." + strings.Repeat("b", 40)
	tests := []struct {
		name     string
		node     Node
		platform bundle.Platform
		want     string
	}{
		{"AWS uses the metadata", facts(machine, bundle.Facts{Schema: 1, MetadataName: "ip-1.internal"}), bundle.PlatformAWS, "ip-1.internal"},
		{"AWS without facts uses the Machine", machine, bundle.PlatformAWS, "from.machine"},
		{"GCP keeps a short name", facts(machine, bundle.Facts{Schema: 1, MetadataName: "a.b.c"}), bundle.PlatformGCP, "a.b.c"},
		{"GCP cuts at the dot", facts(machine, bundle.Facts{Schema: 1, MetadataName: long}), bundle.PlatformGCP, strings.Repeat("a", 40)},
		{"GCP cuts at 63", facts(machine, bundle.Facts{Schema: 1, MetadataName: strings.Repeat("x", 80)}), bundle.PlatformGCP, strings.Repeat("x", 63)},
		{"vSphere adds the suffix", facts(machine, bundle.Facts{Schema: 1, HostName: "WIN-1", DNSSuffix: "Example.com"}), bundle.PlatformVSphere, "winwk-a.example.com"},
		{"vSphere without a suffix keeps the host name", facts(machine, bundle.Facts{Schema: 1, HostName: "WIN-1"}), bundle.PlatformVSphere, ""},
		{"Azure has no override", facts(machine, bundle.Facts{Schema: 1, MetadataName: "x"}), bundle.PlatformAzure, ""},
		{"a node keeps its name", named(machine), bundle.PlatformAWS, "old"},
		{"a node on AWS keeps its name without facts and Machine", named(Node{Backing: BackingNode}), bundle.PlatformAWS, "old"},
		{"a node on GCP keeps its name without facts and Machine", named(Node{Backing: BackingInstance}), bundle.PlatformGCP, "old"},
		{"a node on vSphere keeps its name without facts", named(machine), bundle.PlatformVSphere, "old"},
		{"a node on vSphere keeps its name without a suffix", named(facts(machine, bundle.Facts{Schema: 1, HostName: "WIN-1"})), bundle.PlatformVSphere, "old"},
		{"a node on Azure has no override", named(machine), bundle.PlatformAzure, ""},
		{"a node on Nutanix has no override", named(machine), bundle.PlatformNutanix, ""},
		{"a node without a platform has no override", named(machine), bundle.PlatformNone, ""},
	}
	for _, test := range tests {
		if got := test.node.hostNameOverride(test.platform); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestANodeWithoutFactsShowsWhatObjectsDecide(t *testing.T) {
	instance := Node{Name: "win-a", Backing: BackingInstance, Address: "10.0.0.5", Subnet: "10.132.0.0/24"}
	machine := Node{Name: "win-a", Backing: BackingMachine, Address: "10.0.0.5", MachineName: "win-a"}
	named := machine
	named.HostNames = []string{"win-a"}
	network, ip := "cni.conf, kube-proxy.conf and the service kube-proxy are left out", "the kubelet's --node-ip is an address of the Node, not that of the host's default route"
	for _, tt := range []struct {
		what     string
		node     Node
		platform bundle.Platform
		waits    []string
	}{
		{"an instance", instance, bundle.PlatformNone, []string{network}},
		{"an instance on vSphere", instance, bundle.PlatformVSphere, []string{network}},
		{"a Machine on Nutanix", machine, bundle.PlatformNutanix, []string{network}},
		{"a Machine on Azure", machine, bundle.PlatformAzure, []string{network, ip}},
		{"a Machine on AWS", machine, bundle.PlatformAWS, []string{network, ip}},
		{"a Machine on GCP that has a name", named, bundle.PlatformGCP, []string{network, ip}},
	} {
		b, findings, err := Render(Inputs{Cluster: testCluster(tt.platform), Node: tt.node}, Options{})
		if err != nil || findings.Refused() {
			t.Fatalf("%s: %v %+v", tt.what, err, findings)
		}
		i := slices.IndexFunc(findings, func(f bundle.Finding) bool { return f.Reason == reason.FactsUnknown })
		if i < 0 || !strings.HasSuffix(findings[i].Message, "its bundle is incomplete and cannot be applied: "+strings.Join(tt.waits, "; ")) {
			t.Errorf("%s: %+v", tt.what, findings)
		}
		services := map[string]bool{}
		for _, s := range b.Services() {
			services[s.Name] = true
		}
		if b.Node.Stage != bundle.StageJoined || !services[svcHybridOverlay] || !services[svcExporter] || services[svcKubeProxy] {
			t.Errorf("%s: stage %s, services %v", tt.what, b.Node.Stage, services)
		}
	}
}

func TestCatalogIsConsistent(t *testing.T) {
	ids := map[RowID]bool{}
	for _, r := range Catalog() {
		if ids[r.ID] {
			t.Errorf("there are two rows %s", r.ID)
		}
		ids[r.ID] = true
		if r.Doc == "" || r.Impact == "" || r.Layer == "" {
			t.Errorf("row %s lacks its doc, impact or layer", r.ID)
		}
		if r.Secret && (r.Access != bundle.AccessAdmins || r.Layer != bundle.LayerCluster) {
			t.Errorf("secret row %s is for users, or in the node layer", r.ID)
		}
	}
}

// TestImpactAndReadersAgree: a file has impact restart if and only if a service reads it at its start.
func TestImpactAndReadersAgree(t *testing.T) {
	fleet, findings, err := NewFleet(testCluster(bundle.PlatformAzure), Options{})
	if err != nil || fleet == nil {
		t.Fatalf("%v %+v", err, findings)
	}
	b, _, err := fleet.Node(testNode())
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, s := range b.Services() {
		read = append(read, s.Reads...)
	}
	for _, f := range b.Files() {
		if restarts := slices.Contains(read, f.Path); restarts != (f.Impact == bundle.ImpactRestart) {
			t.Errorf("%s has impact %s; read by a service: %t", f.Path, f.Impact, restarts)
		}
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestTheCopyOfTheLedgerIsState: it is where the node agent writes it, a cleanup removes it, and no limit of logs does.
func TestTheCopyOfTheLedgerIsState(t *testing.T) {
	fleet, findings, err := NewFleet(testCluster(bundle.PlatformAzure), Options{})
	if err != nil || fleet == nil {
		t.Fatalf("%v %+v", err, findings)
	}
	b, _, err := fleet.Node(testNode())
	if err != nil {
		t.Fatal(err)
	}
	var logs string
	for _, s := range b.Services() {
		for _, arg := range s.Argv {
			if dir, ok := strings.CutPrefix(arg, "--log-dir="); ok && s.Name == bundle.AgentService {
				logs = dir
			}
		}
		for _, l := range s.Logs {
			if matches, err := path.Match(l.Pattern, bundle.LedgerCopy); matches || err != nil || l.Path == logs+`\`+bundle.LedgerCopy {
				t.Errorf("%+v limits the copy, %v", l, err)
			}
		}
	}
	isCopy := func(s bundle.State) bool { return s.Path == logs+`\`+bundle.LedgerCopy && s.File && s.Pattern == "" }
	if logs == "" || !slices.ContainsFunc(b.Cluster.State, isCopy) {
		t.Errorf("logs in %q, state %+v", logs, b.Cluster.State)
	}
}

func testCluster(p bundle.Platform) Cluster {
	return Cluster{
		Platform: p, InfrastructureName: "example-x7k2p", APIServerInternalURL: "https://api-int.example.com:6443",
		Network:         Network{Type: ovnKubernetes, ServiceNetworks: []string{"172.30.0.0/16"}, HybridOverlay: true, HybridNetworks: []string{"10.132.0.0/14"}},
		KubeletClientCA: testCertificate, Bootstrap: Bootstrap{CA: testCertificate, Token: bundle.NewSecret("token")},
		Settings: DefaultSettings(),
		Origins: Origins{
			FromInfrastructure: {Kind: "Infrastructure", Name: "cluster"}, FromClusterNetwork: {Kind: "Network", Name: "cluster"}, FromOperatorNetwork: {Kind: "Network", Name: "cluster"},
		},
	}
}

func testNode() Node {
	return Node{
		Name: "win-a", Backing: BackingInstance, Address: "10.0.0.5", Subnet: "10.132.0.0/24",
		Facts: bundle.Facts{
			Schema: 1, HostName: "win-a", Addresses: []string{"10.0.0.5"}, DefaultRoute: bundle.DefaultRoute{Address: "10.0.0.5"}, OSBuild: "10.0.20348",
			Networks: []bundle.HNSNetwork{{Name: overlayNetwork, ManagementIP: "10.0.0.5"}}, Endpoints: []bundle.HNSEndpoint{{Name: vipEndpoint, IP: "10.132.0.9"}},
		},
	}
}

func TestSecretsChangeKeyedDigestsAndNothingElse(t *testing.T) {
	render := func(token string, key bundle.Key) Bundle {
		c := testCluster(bundle.PlatformNone)
		c.Bootstrap.Token = bundle.NewSecret(token)
		b, findings, err := Render(Inputs{Cluster: c, Node: testNode()}, Options{Key: key})
		if err != nil || findings.Refused() {
			t.Fatalf("%v %+v", err, findings)
		}
		return b
	}
	if a, b := render("one", nil), render("two", nil); a.Digest != b.Digest {
		t.Error("the digest of a preview depends on a secret")
	}
	a, b := render("one", bundle.Key("k")), render("two", bundle.Key("k"))
	if a.ClusterDigest == b.ClusterDigest || a.NodeDigest != b.NodeDigest {
		t.Error("another token must change the cluster layer and leave the node layer")
	}
}

func FuzzParsePEM(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		certs, _ := parsePEM(text)
		again, problems := parsePEM(string(encodePEM(certs)))
		if len(again) != len(certs) || len(problems) > 0 {
			t.Errorf("%d certificates became %d, problems %q", len(certs), len(again), problems)
		}
	})
}

func FuzzQuoting(f *testing.F) {
	f.Add(`C:\k\x`)
	f.Add(`it's "quoted"` + "\t\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := quoteTOML(text)
		if err == nil {
			var got struct{ V string }
			if _, err := toml.Decode("v = "+q+"\n", &got); err != nil || got.V != text {
				t.Errorf("TOML %s: %q, %v; want %q", q, got.V, err, text)
			}
		}
		if q, err = quoteYAML(text); err == nil {
			var got struct{ V string }
			if err := yaml.Unmarshal([]byte("v: "+q+"\n"), &got); err != nil || got.V != text {
				t.Errorf("YAML %s: %q, %v; want %q", q, got.V, err, text)
			}
		}
		if q, err = quoteJSON(text); err == nil {
			var got struct{ V string }
			if err := json.Unmarshal([]byte(`{"v":`+q+`}`), &got); err != nil || got.V != text {
				t.Errorf("JSON %s: %q, %v; want %q", q, got.V, err, text)
			}
		}
	})
}

func FuzzProxy(f *testing.F) {
	f.Add("http://user:pass@proxy:3128", "a,*.b")
	f.Fuzz(func(t *testing.T, url, noProxy string) {
		p := Proxy{HTTP: bundle.NewSecret(url), NoProxy: noProxy}
		if p.checkValues(bundle.Ref{}).Refused() {
			return
		}
		c := testCluster(bundle.PlatformNone)
		c.Proxy = p
		if _, _, err := Render(Inputs{Cluster: c, Node: testNode()}, Options{}); err != nil {
			t.Errorf("an accepted proxy does not render: %v", err)
		}
	})
}

// TestSettingsAreDocumented: docs/settings.md lists every setting with its default.

// TestTheFirstKeyOfAKubeletIsOnDisk: only a kubelet that does not rotate certificates writes the key down before it has one.
func TestTheFirstKeyOfAKubeletIsOnDisk(t *testing.T) {
	c := Cluster{Network: Network{ServiceNetworks: []string{"172.30.0.0/16"}}}
	for stage, want := range map[bundle.Stage]bool{bundle.StageJoin: false, bundle.StageJoined: true} {
		if config, err := c.kubeletConfig(stage); err != nil || config.RotateCertificates != want {
			t.Errorf("stage %s: rotates: %t, %v", stage, config.RotateCertificates, err)
		}
	}
}
