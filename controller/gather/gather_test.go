package gather

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
)

// given is a reader of fixed objects.
type given []objects.Object

func (g given) Read(_ context.Context, wants []objects.Want) (objects.Set, error) {
	var set objects.Set
	for _, o := range g {
		for _, w := range wants {
			if w.Group == o.Group && w.Kind == o.Kind {
				set.Objects = append(set.Objects, o)
				break
			}
		}
	}
	return set, nil
}

func object(group, kind, namespace, name, body string) objects.Object {
	return objects.Object{Ref: bundle.Ref{Kind: kind, Namespace: namespace, Name: name}, Group: group, Version: "v1", JSON: []byte(body)}
}

func gatherFrom(t *testing.T, o Options, list ...objects.Object) Result {
	t.Helper()
	r, err := Gather(t.Context(), given(list), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reasons(findings bundle.Findings) []string {
	var list []string
	for _, f := range findings {
		list = append(list, strings.TrimSpace(string(f.Severity)+" "+f.Reason+" "+f.Field))
	}
	return list
}

func TestWindowsInstances(t *testing.T) {
	good := map[string]string{
		"username=Administrator":        "Administrator",
		"  username = Administrator \n": "Administrator",
		"username=Administrator\r\n":    "Administrator",
		`username=EXAMPLE\wmco`:         `EXAMPLE\wmco`,
		"username=jane doe\n\n":         "jane doe",
		"\nusername=core.user-1$\n":     "core.user-1$",
		"username=wmco@corp.example":    "wmco@corp.example",
		"username=Jürgen W.":            "Jürgen W.",
	}
	for text, want := range good {
		if got, err := parseInstance("10.0.0.5", text); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "username=", "username", "Username=x", "user=name=x", "username=a\nusername=b", "username=a\nport=22", "username=\x00", "username=a\x07b", "username=a\tb", "username=a\x85b", "username=a\xffb", "username= \n"} {
		if got, err := parseInstance("10.0.0.5", text); err == nil {
			t.Errorf("%q is accepted as %q", text, got)
		}
	}
}

func TestAddressesOfInstances(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.5": "", "win.example.com": "", "WIN-B": "", "1.example": "", "10-1-42-10": "", "0x7f.example": "", "x0": "", "0xg": "", "win.0a": "", "198.51.100.255": "",
		"fd00::5":         "fd00::5 is not an IPv4 address, which Windows nodes require",
		"a_b":             `"a_b" is neither an IPv4 address nor a DNS name`,
		"":                `"" is neither an IPv4 address nor a DNS name`,
		"10.0.0.5:22":     `"10.0.0.5:22" is neither an IPv4 address nor a DNS name`,
		"../x":            `"../x" is neither an IPv4 address nor a DNS name`,
		"10.1.42":         `"10.1.42" is not an IPv4 address: it has 3 numbers, not 4`,
		"10":              `"10" is not an IPv4 address: it has 1 number, not 4`,
		"10.1.42.10.7":    `"10.1.42.10.7" is not an IPv4 address: it has 5 numbers, not 4`,
		"010.1.42.10":     `"010.1.42.10" is not an IPv4 address: 010 has a leading zero, which some programs read as octal`,
		"10.1.42.256":     `"10.1.42.256" is not an IPv4 address: each number is from 0 to 255`,
		"0x7f000001":      `"0x7f000001" is not an IPv4 address: 0x7f000001 is a number that some programs read as hexadecimal`,
		"0X7F.0.0.1":      `"0X7F.0.0.1" is not an IPv4 address: 0X7F is a number that some programs read as hexadecimal`,
		"127.0.0.0x1":     `"127.0.0.0x1" is not an IPv4 address: 0x1 is a number that some programs read as hexadecimal`,
		"0x":              `"0x" is not an IPv4 address: 0x is a number that some programs read as hexadecimal`,
		"127.1":           `"127.1" is not an IPv4 address: it has 2 numbers, not 4`,
		"2130706433":      `"2130706433" is not an IPv4 address: it has 1 number, not 4`,
		"0177.0.0.1":      `"0177.0.0.1" is not an IPv4 address: 0177 has a leading zero, which some programs read as octal`,
		"017700000001":    `"017700000001" is not an IPv4 address: it has 1 number, not 4`,
		"win.1":           `"win.1" ends in a number, which some programs read as the end of an IPv4 address`,
		"win.0x1":         `"win.0x1" ends in a number, which some programs read as the end of an IPv4 address`,
		"127.0.0.1.":      `"127.0.0.1." is not an IPv4 address: it has 5 numbers, not 4`,
		"0.0.0.0":         "0.0.0.0 stands for no host or for this one (0.0.0.0/8)",
		"127.0.0.1":       "127.0.0.1 is a loopback address, which is not one of another host (127.0.0.0/8)",
		"127.8.9.10":      "127.8.9.10 is a loopback address, which is not one of another host (127.0.0.0/8)",
		"localhost":       "localhost is a name of the loopback interface, not of another host",
		"a.LocalHost":     "a.LocalHost is a name of the loopback interface, not of another host",
		"169.254.3.4":     "169.254.3.4 is a link-local address, which a host without DHCP gives itself (169.254.0.0/16)",
		"224.0.0.1":       "224.0.0.1 is a multicast address (224.0.0.0/4)",
		"239.1.2.3":       "239.1.2.3 is a multicast address (224.0.0.0/4)",
		"255.255.255.255": "255.255.255.255 is the broadcast address",
		"240.0.0.1":       "240.0.0.1 is a reserved address (240.0.0.0/4)",
	} {
		got := ""
		if err := checkAddress(address); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("address %q: %q, want %q", address, got, want)
		}
	}
}

func TestFlagsOfKubeletUnits(t *testing.T) {
	tests := []struct {
		name, unit string
		want       map[string]string
	}{
		{"continued lines", "[Service]\nExecStart=/usr/bin/kubelet \\\n  --cloud-provider=external \\\n   \\\n  --v=2\n", map[string]string{"cloud-provider": "external"}},
		{"an empty value", "[Service]\nExecStart=kubelet --cloud-provider= \\\n --v=2", map[string]string{}},
		{"a value after a blank", "[Service]\nExecStart=kubelet --cloud-provider aws --cloud-config=\"/etc/x\"", map[string]string{"cloud-provider": "aws", "cloud-config": "/etc/x"}},
		{"two flags on a line, a comment before", "# ExecStart=no --cloud-provider=no\n[Service]\nExecStartPre=x --cloud-provider=no\nExecStart=kubelet --a=b --cloud-provider=external", map[string]string{"cloud-provider": "external"}},
		{"no ExecStart", "[Unit]\nDescription=x\n", map[string]string{}},
	}
	for _, test := range tests {
		command, err := execStart([]string{test.unit})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, parseNamedFlags(command, sharedKubeletFlags())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	command, err := execStart([]string{"[Service]\nExecStart=kubelet --cloud-provider=a\n", "[Service]\nExecStart=\nExecStart=kubelet --cloud-provider=b\n"})
	if err != nil || parseNamedFlags(command, sharedKubeletFlags())["cloud-provider"] != "b" {
		t.Errorf("a drop-in does not win: %q, %v", command, err)
	}
}

func TestMissingSecretsBecomeStandIns(t *testing.T) {
	ref := func(data string) objects.Object {
		return object("", "Secret", namespaceMCO, bootstrapTokenName, `{"data":{`+data+`}}`)
	}
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	whole := ref(`"token":"` + encode("secret") + `","ca.crt":"` + encode("CA") + `"`)
	emptied := ref(`"token":"` + encode("998 bytes long") + `","ca.crt":"` + encode("CA") + `"`)
	if r := gatherFrom(t, Options{}, whole); r.Cluster.Bootstrap.Token.Reveal() != "secret" {
		t.Error("the token is not read")
	}
	r := gatherFrom(t, Options{}, emptied)
	if !bundle.IsStandIn(r.Cluster.Bootstrap.Token.Reveal()) || r.Cluster.Bootstrap.CA != "CA" {
		t.Errorf("an emptied token gives %q", r.Cluster.Bootstrap.Token.Reveal())
	}
	if mixed := gatherFrom(t, Options{Complete: true}, emptied); !mixed.Cluster.Bootstrap.Token.IsStandIn() {
		t.Errorf("an emptied token beside a live cluster gives %q", mixed.Cluster.Bootstrap.Token.Reveal())
	}
	if live := gatherFrom(t, Options{Complete: true}); !live.Cluster.Bootstrap.Token.IsZero() || live.Cluster.Bootstrap.CA != "" {
		t.Error("a live cluster gets a stand-in")
	}
	hidden := ref(`"token":"` + encode("hunter2") + `"`)
	if text := fmt.Sprintf("%+v %#v", gatherFrom(t, Options{}, hidden), gatherFrom(t, Options{}, hidden)); strings.Contains(text, "hunter2") {
		t.Error("a printed result shows the token")
	}
}

func TestTextOfASecretReplacesItsData(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	r := gatherFrom(t, Options{},
		object("", "Secret", namespaceMCO, bootstrapTokenName, `{"data":{"token":"`+encode("old")+`","ca.crt":"`+encode("CA")+`"},"stringData":{"token":"new"}}`),
		object("", "Secret", render.PullSecretNamespace, render.PullSecretName, `{"stringData":{".dockerconfigjson":"{}"}}`))
	if got := r.Cluster.Bootstrap.Token.Reveal(); got != "new" || r.Cluster.Bootstrap.CA != "CA" {
		t.Errorf("token %q, CA %q", got, r.Cluster.Bootstrap.CA)
	}
	if got := r.Cluster.Mirrors.PullSecret.Reveal(); got != "{}" {
		t.Errorf("pull secret %q", got)
	}
}

// TestPullSecretWithoutItsValue: nodes must not lose the credentials of their mirrors because an input lacks them.
func TestPullSecretWithoutItsValue(t *testing.T) {
	pullSecret := func(rest string) []objects.Object {
		return []objects.Object{object("", "Secret", render.PullSecretNamespace, render.PullSecretName, "{"+rest+"}")}
	}
	finding := `warning SecretStandIn data[".dockerconfigjson"]`
	for _, tt := range []struct {
		name    string
		objects []objects.Object
		standIn bool
	}{
		{"absent", nil, true},
		{"without the key", pullSecret(`"data":{"other":"e30="}`), true},
		{"empty", pullSecret(`"data":{".dockerconfigjson":""}`), true},
		{"elided", pullSecret(`"data":{".dockerconfigjson":"NDA3IGJ5dGVzIGxvbmc="}`), true},
		{"blank", pullSecret(`"stringData":{".dockerconfigjson":" \n"}`), true},
		{"a stand-in of an earlier preview", pullSecret(`"stringData":{".dockerconfigjson":"<stand-in: x is not in the inputs>"}`), true},
		{"masked by an earlier preview", pullSecret(`"stringData":{".dockerconfigjson":"<masked>\n"}`), true},
		{"null", pullSecret(`"data":{".dockerconfigjson":"bnVsbA=="}`), true},
		{"a list", pullSecret(`"data":{".dockerconfigjson":"W10="}`), true},
		{"no JSON", pullSecret(`"stringData":{".dockerconfigjson":"<redacted>"}`), true},
		{"none on purpose", pullSecret(`"data":{".dockerconfigjson":"e30="}`), false},
	} {
		for _, complete := range []bool{false, true} {
			r := gatherFrom(t, Options{Complete: complete}, tt.objects...)
			if got := r.Cluster.Mirrors.PullSecret.IsStandIn(); got != tt.standIn {
				t.Errorf("%s: stand-in %t", tt.name, got)
			}
			if got := slices.Contains(reasons(r.Findings), finding); got != tt.standIn {
				t.Errorf("%s: finding %t in %q", tt.name, got, reasons(r.Findings))
			}
		}
	}
}

// TestTrustedCAsComeWithAProxy: what the network operator has not injected yet must not take CAs from nodes.
func TestTrustedCAsComeWithAProxy(t *testing.T) {
	proxy := func(urls, name string) objects.Object {
		return object(groupConfig, "Proxy", "", clusterName, `{"spec":{"trustedCA":{"name":"`+name+`"}},"status":{`+urls+`}}`)
	}
	cas := func(text string) objects.Object {
		return object("", "ConfigMap", OperatorNamespace, render.TrustedCAConfigMap, `{"data":{"ca-bundle.crt":"`+text+`"}}`)
	}
	const used, missing = `"httpProxy":"http://p:1"`, `error InputMissing data["ca-bundle.crt"]`
	for _, tt := range []struct {
		name    string
		objects []objects.Object
		want    string
		finding string
	}{
		{"a proxy with CAs", []objects.Object{proxy(used, "corporate-ca"), cas("PEM")}, "PEM", ""},
		{"a proxy without a name", []objects.Object{proxy(used, ""), cas("PEM")}, "PEM", ""},
		{"a proxy without CAs", []objects.Object{proxy(used, "")}, "", ""},
		{"a proxy whose CAs are absent", []objects.Object{proxy(used, "corporate-ca")}, "", "error InputMissing"},
		{"a proxy whose CAs are not injected yet", []objects.Object{proxy(used, "corporate-ca"), cas(" ")}, "", missing},
		{"no proxy", []objects.Object{proxy("", "corporate-ca"), cas("PEM")}, "", "info TrustedCAIgnored"},
		{"a proxy in the spec alone", []objects.Object{object(groupConfig, "Proxy", "", clusterName, `{"spec":{"httpsProxy":"http://p:1","trustedCA":{"name":"c"}}}`)}, "", ""},
		{"no proxy and nothing injected", []objects.Object{proxy("", ""), cas("")}, "", ""},
	} {
		r := gatherFrom(t, Options{}, tt.objects...)
		if r.Cluster.TrustedCAs != tt.want {
			t.Errorf("%s: CAs %q", tt.name, r.Cluster.TrustedCAs)
		}
		var found string
		for _, f := range r.Findings {
			if f.Object.Name == render.TrustedCAConfigMap {
				found = strings.TrimSpace(string(f.Severity) + " " + f.Reason + " " + f.Field)
			}
		}
		if found != tt.finding {
			t.Errorf("%s: finding %q, want %q", tt.name, found, tt.finding)
		}
	}
}

func TestProxyOfTheClusterWinsOverTheOperatorsEnvironment(t *testing.T) {
	env := map[string]string{"HTTP_PROXY": "http://olm:1", "NO_PROXY": "x"}
	r := gatherFrom(t, Options{Environment: env})
	if got := r.Cluster.Proxy.HTTP.Reveal(); got != "http://olm:1" {
		t.Errorf("without a Proxy: %q", got)
	}
	r = gatherFrom(t, Options{Environment: env}, object(groupConfig, "Proxy", "", clusterName, `{"status":{}}`))
	if !r.Cluster.Proxy.IsZero() {
		t.Error("an empty Proxy does not win")
	}
	r = gatherFrom(t, Options{}, object(groupConfig, "Proxy", "", clusterName, `{"status":{"httpProxy":"http://user:****@p:1"}}`))
	if got := reasons(r.Findings); !slices.Contains(got, "warning SecretStandIn status.httpProxy") {
		t.Errorf("a masked password is not reported: %q", got)
	}
}

func TestMachinesNodesAndInstancesAreMatched(t *testing.T) {
	machine := func(name, address string) objects.Object {
		return object(groupMachine, "Machine", namespaceMachines, name, fmt.Sprintf(`{"metadata":{"name":%q},"status":{"addresses":[{"type":"InternalIP","address":"fe80::1"},{"type":"InternalIP","address":%q}]}}`, name, address))
	}
	node := func(name, address string) objects.Object {
		return object("", "Node", "", name, fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{%q:"10.132.0.0/24"}},"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, name, annotationSubnet, address))
	}
	r := gatherFrom(t, Options{Facts: []bundle.Facts{{Schema: 1, HostName: "B", Addresses: []string{"10.0.0.2"}}}},
		machine("m-a", "10.0.0.1"), machine("m-x", "10.0.0.9"), node("n-a", "10.0.0.1"), node("n-b", "10.0.0.2"), node("n-c", "10.0.0.3"),
		object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"10.0.0.2":"username=u","10.0.0.1":"username=u","N-C":"username=u","10.0.0.8":"username=u"}}`),
	)
	var got []string
	for _, n := range r.Nodes {
		got = append(got, fmt.Sprintf("%s %s %s %s %t", n.ID(), n.Backing, n.Address, n.MachineName, n.Facts.IsZero()))
	}
	want := []string{
		"n-a Machine 10.0.0.1 m-a true", "n-b Instance 10.0.0.2  false", "n-c Instance N-C  true", "10.0.0.8 Instance 10.0.0.8  true", "10.0.0.9 Machine 10.0.0.9 m-x true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFactsOfAHostAreForNoOther: what a host prints may hold facts of another one, or its addresses.
func TestFactsOfAHostAreForNoOther(t *testing.T) {
	facts := func(name string, addresses ...string) bundle.Facts {
		return bundle.Facts{Schema: 1, HostName: name, Addresses: addresses}
	}
	a, b := facts("a", "10.0.0.1"), facts("b", "10.0.0.2")
	for name, tt := range map[string]struct {
		given    []bundle.Facts
		want     []string
		findings int
	}{
		"of each host":               {[]bundle.Facts{b, a}, []string{"a", "b"}, 0},
		"a second one for a host":    {[]bundle.Facts{a, b, facts("lie", "10.0.0.2")}, []string{"a", ""}, 2},
		"the same twice":             {[]bundle.Facts{a, a, b}, []string{"", "b"}, 2},
		"one with another's address": {[]bundle.Facts{facts("lie", "10.0.0.1", "10.0.0.2"), b}, []string{"", ""}, 2},
		"of no host":                 {[]bundle.Facts{a, facts("c", "10.0.0.3")}, []string{"a", ""}, 1},
	} {
		r := gatherFrom(t, Options{Facts: tt.given},
			object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"10.0.0.1":"username=u","10.0.0.2":"username=u"}}`))
		var got []string
		for _, n := range r.Nodes {
			got = append(got, n.Facts.HostName)
		}
		unused := 0
		for _, f := range r.Findings {
			if f.Reason == reason.FactsUnmatched {
				unused++
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || unused != tt.findings {
			t.Errorf("%s: %d findings (-want +got):\n%s", name, unused, diff)
		}
	}
}

func TestMachineConfigOfThePoolWinsOverTheNewest(t *testing.T) {
	mc := func(name, created string) objects.Object {
		return object(groupMachineConfig, "MachineConfig", "", name, fmt.Sprintf(`{"metadata":{"name":%q,"creationTimestamp":%q},"spec":{"config":{"ignition":{"version":"3.5.0"}}}}`, name, created))
	}
	pool := object(groupMachineConfig, "MachineConfigPool", "", workerPool, `{"status":{"configuration":{"name":"rendered-worker-a"}}}`)
	old, recent := mc("rendered-worker-a", "2026-01-01T00:00:00Z"), mc("rendered-worker-b", "2026-02-01T00:00:00Z")
	if r := gatherFrom(t, Options{}, pool, old, recent); r.Cluster.Origins[render.FromMachineConfig].Name != "rendered-worker-a" {
		t.Errorf("with the pool: %s", r.Cluster.Origins[render.FromMachineConfig].Name)
	}
	if r := gatherFrom(t, Options{}, old, recent); r.Cluster.Origins[render.FromMachineConfig].Name != "rendered-worker-b" {
		t.Errorf("without the pool: %s", r.Cluster.Origins[render.FromMachineConfig].Name)
	}
}

func TestIgnitionFindings(t *testing.T) {
	const version, ecrFile = `"ignition":{"version":"3.5.0"}`, dirCredentialProviders + "ecr-credential-provider.yaml"
	aws := object(groupConfig, "Infrastructure", "", clusterName, `{"status":{"platformStatus":{"type":"AWS"}}}`)
	provider := func(file string) string {
		return version + `,"storage":{"files":[{"path":"/etc/other","contents":{"source":"https://example.com/x"}},{"path":"` + ecrFile + `",` + file + `}]}`
	}
	tests := []struct {
		name, config string
		findings     []string
		contents     string
	}{
		{"a file that is read, beside one that is fetched", provider(`"contents":{"source":"data:,region%3Da"}`), nil, "region=a"},
		{"every problem at once", version + `,"storage":{"files":[{"path":"x"},{"path":7}]}`, []string{
			"error InputInvalid spec.config.storage.files[0].path", "error InputInvalid spec.config.storage.files[1].path",
		}, ""},
		{"a version that is not known", `"ignition":{"version":"2.2.0"}`, []string{"error InputInvalid spec.config.ignition.version"}, ""},
		{"a misspelt field", provider(`"content":{"source":"data:,a"}`), []string{"warning FieldUnknown spec.config.storage.files[1].content"}, ""},
		{"contents that are fetched", provider(`"contents":{"source":"https://example.com/x"}`), []string{"error InputInvalid spec.config.storage.files[" + ecrFile + "]"}, ""},
		{"appended", provider(`"append":[{"source":"data:,a"}]`), []string{"error InputInvalid spec.config.storage.files[" + ecrFile + "].append"}, ""},
	}
	pool := object(groupMachineConfig, "MachineConfigPool", "", workerPool, `{"status":{"configuration":{"name":"rendered-worker-a"}}}`)
	for _, test := range tests {
		r := gatherFrom(t, Options{}, aws, pool, object(groupMachineConfig, "MachineConfig", "", "rendered-worker-a", `{"spec":{"config":{`+test.config+`}}}`))
		var got []string
		for _, f := range r.Findings {
			if f.Object.Kind == "MachineConfig" {
				got = append(got, string(f.Severity)+" "+f.Reason+" "+f.Field)
			}
		}
		if diff := cmp.Diff(test.findings, got); diff != "" || r.Cluster.Machine.Providers["ecr-credential-provider.yaml"] != test.contents {
			t.Errorf("%s: contents %q; (-want +got):\n%s", test.name, r.Cluster.Machine.Providers["ecr-credential-provider.yaml"], diff)
		}
	}
}

func TestTLSProfiles(t *testing.T) {
	server := func(profile string) objects.Object {
		return object(groupConfig, "APIServer", "", clusterName, `{"spec":{"tlsSecurityProfile":`+profile+`}}`)
	}
	tests := map[string]render.TLSProfile{
		`null`:                          {},
		`{}`:                            {},
		`{"type":""}`:                   {},
		`{"type":"Modern","modern":{}}`: {MinVersion: "VersionTLS13", Ciphers: []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}},
		`{"type":"Custom","custom":{"minTLSVersion":"VersionTLS12","ciphers":["ECDHE-RSA-AES128-GCM-SHA256","DHE-RSA-AES128-GCM-SHA256"]}}`: {MinVersion: "VersionTLS12", Ciphers: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}},
	}
	for profile, want := range tests {
		if diff := cmp.Diff(want, gatherFrom(t, Options{}, server(profile)).Cluster.TLS); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
	for _, profile := range []string{`{"type":"Custom"}`, `{"type":"Ancient"}`, `{"type":"Custom","custom":{"minTLSVersion":"TLSv1.2"}}`} {
		if r := gatherFrom(t, Options{}, server(profile)); !r.Findings.Refused() {
			t.Errorf("%s is accepted", profile)
		}
	}
}

func FuzzParseInstance(f *testing.F) {
	f.Add("10.0.0.5", "username=Administrator\r\n")
	f.Fuzz(func(t *testing.T, address, text string) {
		user, err := parseInstance(address, text)
		if err == nil && (user == "" || strings.ContainsAny(user+address, "\r\n\x00\"") || strings.Contains(address, "/")) {
			t.Errorf("address %q, user %q accepted", address, user)
		}
	})
}

func FuzzKubeletUnit(f *testing.F) {
	f.Add("[Service]\nExecStart=kubelet --cloud-provider=external \\\n --v=2\n")
	f.Fuzz(func(t *testing.T, text string) {
		command, err := execStart([]string{text})
		if err != nil {
			return
		}
		for name, value := range parseNamedFlags(command, sharedKubeletFlags()) {
			if value == "" || strings.ContainsAny(value, " \t\n") {
				t.Errorf("flag %s has value %q", name, value)
			}
		}
	})
}

// FuzzGather checks that no object makes gathering or rendering panic.
func FuzzGather(f *testing.F) {
	f.Add("Infrastructure", `{"status":{"platformStatus":{"type":"AWS"}}}`)
	f.Add("Network", `{"spec":{"serviceNetwork":["172.30.0.0/16"]}}`)
	f.Add("ControllerConfig", `{"spec":{"kubeAPIServerServingCAData":"YQ==","infra":{}}}`)
	f.Add("MachineConfig", `{"spec":{"config":{"ignition":{"version":"3.2.0"}}}}`)
	f.Add("Node", `{"metadata":{"name":"a"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`)
	f.Add("ConfigMap", `{"data":{"10.0.0.1":"username=a","config.yaml":"rollout: {}"}}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		var list given
		for _, w := range wantedObjects(OperatorNamespace) {
			if w.Kind != kind {
				continue
			}
			for _, name := range append(w.Names, "x") {
				list = append(list, object(w.Group, w.Kind, w.Namespace, name, body))
			}
		}
		r, err := Gather(t.Context(), list, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := render.NewFleet(r.Cluster, render.Options{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFactsThatANodeReports: a node writes them itself, so they are used for nothing but this node.
func TestFactsThatANodeReports(t *testing.T) {
	node := func(report string) objects.Object {
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": "win-a", "annotations": map[string]string{published.ReportAnnotation: report}},
			"status":   map[string]any{"addresses": []map[string]string{{"type": "InternalIP", "address": "10.0.0.5"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return object("", "Node", "", "win-a", string(body))
	}
	report := func(address string) string {
		text, err := published.Report{State: published.StateApplied, Facts: &bundle.Facts{Schema: 1, HostName: "win-a", Addresses: []string{address}}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, tt := range []struct {
		name, report string
		known, bad   bool
	}{
		{"its own", report("10.0.0.5"), true, false},
		{"another host's", report("10.0.0.6"), false, true},
		{"no JSON", "{", false, true},
		{"without facts", `{"schema":1,"state":"Applied"}`, false, false},
	} {
		r := gatherFrom(t, Options{Complete: true}, node(tt.report))
		if got := !r.Nodes[0].Facts.IsZero(); got != tt.known {
			t.Errorf("%s: facts %t", tt.name, got)
		}
		bad := slices.ContainsFunc(r.Findings, func(f bundle.Finding) bool { return f.Reason == reason.FactsUnmatched && f.Node == "win-a" })
		if bad != tt.bad {
			t.Errorf("%s: %q", tt.name, reasons(r.Findings))
		}
	}
	given := bundle.Facts{Schema: 1, HostName: "asked", Addresses: []string{"10.0.0.5"}}
	if r := gatherFrom(t, Options{Facts: []bundle.Facts{given}}, node(report("10.0.0.5"))); r.Nodes[0].Facts.HostName != "asked" {
		t.Error("facts that the host was asked for do not win")
	}
}

func lookup(addresses ...string) Lookup {
	var l Lookup
	for _, a := range addresses {
		l.Addresses = append(l.Addresses, netip.MustParseAddr(a))
	}
	return l
}

// TestEntriesOfInstancesAreJudgedOneByOne has an entry for each way in which one can be wrong, beside right ones.
func TestEntriesOfInstancesAreJudgedOneByOne(t *testing.T) {
	data := map[string]string{
		"10.0.0.1":     "username=u",          // a Machine
		"10.0.0.2":     "username=u\r\n",      // right
		"10.0.0.3":     "username=",           // no user
		"10.0.0.4":     `username=EXAMPLE\u`,  // right
		"fd00::1":      "username=u",          // IPv6
		"both":         "username=u",          // two addresses
		"gone":         "username=u",          // no such name
		"ipv6":         "username=u",          // IPv6 only
		"loop":         "username=u",          // resolves to the operator itself
		"machine-name": "username=u",          // a Machine, by its address
		"named":        "username=u",          // right
		"NAMED":        "username=u",          // the same in other letters
		"node-name":    "username=u",          // right, has joined
		"same":         "username=u",          // 10.0.0.2 by name
		"unasked":      "username=u",          // right, not looked up yet
		"silent":       "username=u",          // the resolver does not answer, has joined
		"empty-answer": "username=u",          // neither an address nor an error
		"mapped":       "username=u\nextra=1", // two lines
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	node := func(name, address string) objects.Object {
		return object("", "Node", "", name, fmt.Sprintf(`{"metadata":{"name":%q},"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}]}}`, name, address, name))
	}
	r := gatherFrom(t, Options{Lookups: map[string]Lookup{
		"both": lookup("10.0.0.21", "10.0.0.20", "fd00::20", "10.0.0.21"), "gone": {Problem: "no such host"}, "ipv6": lookup("fd00::9"), "loop": lookup("127.0.0.1"),
		"machine-name": lookup("10.0.0.1"), "named": lookup("10.0.0.22"), "NAMED": lookup("10.0.0.22"), "node-name": lookup("10.0.0.23"), "same": lookup("::ffff:10.0.0.2"),
		"silent": {Problem: "timed out"}, "empty-answer": {}, "10.0.0.4": {Problem: "an address is not looked up"},
	}},
		object(groupMachine, "Machine", namespaceMachines, "m", `{"metadata":{"name":"m"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`),
		node("win-23", "10.0.0.23"), node("silent", "10.0.0.24"),
		object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, string(text)),
	)
	got := map[string]string{}
	for _, i := range r.Instances {
		got[i.Address] = strings.TrimSpace(fmt.Sprintf("%t %s %s %s", i.Skipped, i.Username, strings.Join(i.Addresses, ","), i.Finding.Reason))
	}
	want := map[string]string{
		"10.0.0.1": "true u  InstanceTaken", "10.0.0.2": "false u", "10.0.0.3": "true   InstanceInvalid", "10.0.0.4": `false EXAMPLE\u`, "fd00::1": "true   InstanceInvalid",
		"both": "false u 10.0.0.20,10.0.0.21 InstanceAmbiguous", "gone": "false u  InstanceUnresolvable", "ipv6": "false u  InstanceUnresolvable", "loop": "false u  InstanceUnresolvable",
		"machine-name": "true u 10.0.0.1 InstanceTaken", "NAMED": "false u 10.0.0.22", "named": "true u 10.0.0.22 InstanceTaken", "node-name": "false u 10.0.0.23", "same": "true u 10.0.0.2 InstanceTaken",
		"unasked": "false u", "silent": "false u  InstanceUnresolvable", "empty-answer": "false u  InstanceUnresolvable", "mapped": "true   InstanceInvalid",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	var hosts []string
	for _, n := range r.Nodes {
		hosts = append(hosts, n.ID()+" "+n.Address+" "+string(n.Backing))
	}
	wantHosts := []string{
		"silent silent Instance", "win-23 node-name Instance", "10.0.0.1 10.0.0.1 Machine", "10.0.0.2 10.0.0.2 Instance", "10.0.0.4 10.0.0.4 Instance", "NAMED NAMED Instance", "both both Instance",
		"empty-answer empty-answer Instance", "gone gone Instance", "ipv6 ipv6 Instance", "loop loop Instance", "unasked unasked Instance",
	}
	if diff := cmp.Diff(wantHosts, hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	messages := map[string]string{}
	for _, f := range r.Findings {
		if f.Severity == bundle.SeverityError && f.Node != "" {
			t.Errorf("one entry refuses all: %+v", f)
		}
		if strings.HasPrefix(f.Reason, "Instance") {
			messages[f.Node] = f.Message
		}
	}
	for address, message := range map[string]string{
		"same": "is the host of the entry 10.0.0.2", "named": "is the host of the entry NAMED", "10.0.0.1": "is an address of Machine m",
		"ipv6": "the name cannot be resolved: fd00::9 is not an IPv4 address, which Windows nodes require; the operator cannot reach the host",
		"gone": "the name cannot be resolved: no such host; the operator cannot reach the host",
		"both": "the name has 2 IPv4 addresses (10.0.0.20, 10.0.0.21); they must be those of one host",
	} {
		if messages[address] != message {
			t.Errorf("%s: %q, want %q", address, messages[address], message)
		}
	}
}

// TestInstancesThatAreNotThere tells a ConfigMap without entries from one that is absent.
func TestInstancesThatAreNotThere(t *testing.T) {
	for text, found := range map[string]bool{"": false, `{}`: true, `{"data":{}}`: true, `{"data":null}`: true} {
		var list []objects.Object
		if text != "" {
			list = append(list, object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, text))
		}
		r := gatherFrom(t, Options{}, list...)
		if _, ok := r.Cluster.Origins[render.FromInstances]; ok != found || len(r.Instances) != 0 || len(r.Nodes) != 0 {
			t.Errorf("%q: found %t, %+v, %+v", text, ok, r.Instances, r.Nodes)
		}
	}
}
