package certificates

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"wmco/bundle"
)

// cases are judged one by one. Event is a part of its message, empty for none.
var cases = []struct {
	name   string
	ask    ask
	change change
	want   Decision
	event  string
}{
	{"the first certificate of a host that waits for it", clientOf("win-a"), nil, Approve, ""},
	{"with an RSA key and its usage", clientOf("win-a"), func(a *ask, k *Known) {
		a.key, k.Hosts[0].PendingKey = keys.rsa, pending(keys.rsa)
		a.usages = append(slices.Clone(clientUsages), certificatesv1.UsageKeyEncipherment)
	}, Approve, ""},
	{"a serving certificate for what the host has", servingOf("win-a", "win-a", "WIN-A.corp.example.com", "10.0.0.5", "fd00::5"), nil, Approve, ""},
	{"a serving certificate for a name of the resolver", servingOf("win-a", "win-a.ptr.example.com"), nil, Approve, ""},
	{"a serving certificate for an entry that is a name, and its address", servingOf("win-b", "win-b.example.com", "10.0.0.6"), nil, Approve, ""},
	{"a serving certificate before the Node is seen", servingOf("win-a", "10.0.0.5"), nil, Approve, ""},
	{"cloud-node-manager of an instance", cloudOf("win-b"), nil, Approve, ""},
	{"cloud-node-manager of a Machine", cloudOf("win-m"), nil, Approve, ""},

	{"facts are not known yet", clientOf("win-a"), func(_ *ask, k *Known) { k.Hosts[0].Facts = bundle.Facts{} }, Ask, ""},
	{"the pending key is not known yet", clientOf("win-a"), func(_ *ask, k *Known) { k.Hosts[0].PendingKey = nil }, Ask, ""},
	{"facts for a serving certificate are not known yet", servingOf("win-a", "10.0.0.5"), func(_ *ask, k *Known) { k.Hosts[0].Facts = bundle.Facts{} }, Ask, ""},

	// Impostors.
	{"another requester", clientOf("win-a"), func(a *ask, _ *Known) { a.user = "system:serviceaccount:default:node-bootstrapper" }, Leave, "not by the node bootstrapper"},
	{"another node as requester", clientOf("win-a"), func(a *ask, _ *Known) { a.user, a.groups = "system:node:win-b", nodeGroups }, Leave, `"system:node:win-b"`},
	{"the bootstrapper's name with something after it", clientOf("win-a"), func(a *ask, _ *Known) { a.user += "2" }, Leave, "not by the node bootstrapper"},
	{"the perfect impostor with another key", clientOf("win-a"), func(a *ask, _ *Known) { a.key = keys.other }, Leave, "key is not the one"},
	{"a key of which a signature takes long to check", clientOf("win-a"), func(a *ask, k *Known) { a.key, k.Hosts[0].PendingKey = keys.large, pending(keys.large) }, Leave, "more than 8192 bits"},
	{"a serving certificate with such a key", servingOf("win-a", "win-a"), func(a *ask, _ *Known) { a.key = keys.large }, Leave, "more than 8192 bits"},
	{"a pending key that is damaged", clientOf("win-a"), func(_ *ask, k *Known) { k.Hosts[0].PendingKey = []byte("x") }, Leave, "key is not the one"},
	{"replay after the Node exists", clientOf("win-b"), func(_ *ask, k *Known) { k.Hosts[1].PendingKey = pending(keys.kubelet) }, Leave, "a Node of this name exists"},
	{"a host that calls itself like a node of the control plane", clientOf("master-0"), func(_ *ask, k *Known) { k.Hosts[0].Name = "master-0" }, Leave, "a Node of this name exists"},
	{"a host that calls itself like a Machine without a Node", clientOf("win-m"), func(_ *ask, k *Known) { k.Hosts[0].Name, k.Hosts[2].Name, k.Nodes = "win-m", "", nil }, Leave, "belongs to another host"},
	{"a host that calls itself like another entry", clientOf("win-b.example.com"), func(_ *ask, k *Known) { k.Hosts[0].Name = "win-b.example.com" }, Leave, "belongs to another host"},
	{"a host that calls itself like the API server", clientOf("api-int.example.com"), func(_ *ask, k *Known) { k.Hosts[0].Name = "api-int.example.com" }, Leave, "belongs to another host"},
	{"a host that calls itself like a route", clientOf("console.apps.example.com"), func(_ *ask, k *Known) { k.Hosts[0].Name = "console.apps.example.com" }, Leave, "belongs to another host"},
	{"a host that calls itself like another one by its record", clientOf("win-away"), func(_ *ask, k *Known) { k.Hosts[0].Name = "win-away" }, Leave, "belongs to another host"},
	{"a host that calls itself like a service", clientOf("kubernetes.default.svc"), func(_ *ask, k *Known) { k.Hosts[0].Name = "kubernetes.default.svc" }, Leave, "belongs to another host"},
	{"two hosts with one name", clientOf("win-a"), func(_ *ask, k *Known) { k.Hosts[1].Name = "win-a" }, Leave, "10.0.0.5 and win-b.example.com both say"},
	{"a name that Windows reserves", clientOf("con"), func(_ *ask, k *Known) { k.Hosts[0].Name = "con" }, Leave, "rename the computer"},
	{"a name that no Node can have", clientOf("win_a"), func(_ *ask, k *Known) { k.Hosts[0].Name = "win_a" }, Leave, "rename the computer"},
	{"a client certificate with a name", clientOf("win-a"), func(a *ask, _ *Known) { a.template.DNSNames = []string{"win-a"} }, Leave, "extension 2.5.29.17"},
	{"a client certificate that may sign", clientOf("win-a"), func(a *ask, _ *Known) {
		a.template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
	}, Leave, "extension 2.5.29.19"},
	{"server usage in a client certificate", clientOf("win-a"), func(a *ask, _ *Known) { a.usages = serverUsages }, Leave, "usages"},
	{"one usage more", clientOf("win-a"), func(a *ask, _ *Known) { a.usages = append(slices.Clone(clientUsages), certificatesv1.UsageServerAuth) }, Leave, "usages"},
	{"one usage less", clientOf("win-a"), func(a *ask, _ *Known) { a.usages = clientUsages[:1] }, Leave, "usages"},
	{"a usage twice", clientOf("win-a"), func(a *ask, _ *Known) { a.usages = append(slices.Clone(clientUsages), clientUsages[0]) }, Leave, "usages"},
	{"another group", clientOf("win-a"), func(a *ask, _ *Known) { a.template.Subject.Organization = []string{"system:masters"} }, Leave, "subject"},
	{"a second group", clientOf("win-a"), func(a *ask, _ *Known) {
		a.template.Subject.Organization = []string{"system:nodes", "system:masters"}
	}, Leave, "subject"},
	{"no group", clientOf("win-a"), func(a *ask, _ *Known) { a.template.Subject.Organization = nil }, Leave, "subject"},
	{"more in the subject", clientOf("win-a"), func(a *ask, _ *Known) { a.template.Subject.OrganizationalUnit = []string{"x"} }, Leave, "subject"},
	{"a serving certificate that another node asks for", servingOf("win-a", "10.0.0.5"), func(a *ask, _ *Known) { a.user = "system:node:win-b" }, Leave, `"system:node:win-b"`},
	{"a serving certificate that the bootstrapper asks for", servingOf("win-a", "10.0.0.5"), func(a *ask, _ *Known) { a.user = bootstrapper }, Leave, "not by the node"},
	{"a requester with the name of the node, but not a node", servingOf("win-a", "10.0.0.5"), func(a *ask, _ *Known) { a.groups = []string{"system:authenticated"} }, Leave, "not by the node"},
	{"an extra name", servingOf("win-a", "win-a", "evil.example.com", "10.0.0.5"), nil, Leave, `"evil.example.com"`},
	{"a wildcard", servingOf("win-a", "*.corp.example.com"), nil, Leave, `"*.corp.example.com"`},
	{"a wildcard that the host claims, as where nodes have other names than their hosts", servingOf("win-a", "*.corp.example.com"), func(_ *ask, k *Known) {
		k.Hosts[0].Facts.HostName = "*"
	}, Leave, `"*.corp.example.com"`},
	{"a name of a service with a dot at its end, which the host claims", servingOf("win-a", "kubernetes.default.svc."), func(_ *ask, k *Known) {
		k.Hosts[0].Facts.HostName, k.Hosts[0].Facts.DNSSuffix = "kubernetes", "default.svc.."
	}, Leave, `"kubernetes.default.svc."`},
	{"the beginning of its own name", servingOf("win-a", "win"), nil, Leave, `"win"`},
	{"its name with something after it", servingOf("win-a", "win-a.evil.example.com"), nil, Leave, `"win-a.evil.example.com"`},
	{"an extra address", servingOf("win-a", "10.0.0.5", "10.0.0.7"), nil, Leave, `"10.0.0.7"`},
	{"an address as a name", servingOf("win-a"), func(a *ask, _ *Known) { a.template.DNSNames = []string{"10.0.0.5"} }, Leave, `"10.0.0.5"`},
	{"the loopback address, which the host has", servingOf("win-a", "127.0.0.1"), nil, Leave, `"127.0.0.1"`},
	{"a link-local address, which the host has", servingOf("win-a", "fe80::1"), nil, Leave, `"fe80::1"`},
	{"the API server's address, which the host claims", servingOf("win-a", "10.0.0.1"), nil, Leave, `"10.0.0.1"`},
	{"an address of another host by its record, at which the host answers", servingOf("win-a", "10.0.0.10"), nil, Leave, `does not have the address "10.0.0.10"`},
	{"an address at which the host was not reached", servingOf("win-a", "10.0.0.5", "10.0.0.11"), nil, Leave, `was not reached at its address 10.0.0.11`},
	{"an address of the network of Pods, at which the host answers", servingOf("win-a", "10.132.0.2"), nil, Leave, `does not have the address "10.132.0.2"`},
	{"an IPv4 address written as one of IPv6, of the network of Pods", servingOf("win-a", "::ffff:10.132.0.2"), nil, Leave, `does not have the address "10.132.0.2"`},
	{"another Node's name by a record, while its Node is away", servingOf("win-a", "win-away"), func(_ *ask, k *Known) { k.Hosts[0].Facts.HostName = "WIN-AWAY" }, Leave, `"win-away"`},
	{"a name of routes, which the host claims", servingOf("win-a", "oauth.apps.example.com"), func(_ *ask, k *Known) {
		k.Hosts[0].Facts.HostName, k.Hosts[0].Facts.DNSSuffix = "oauth", "Apps.example.com"
	}, Leave, `"oauth.apps.example.com"`},
	{"the domain of routes, which the host claims", servingOf("win-a", "apps.example.com"), func(_ *ask, k *Known) { k.Hosts[0].Facts.HostName = "apps.example.com" }, Leave, `"apps.example.com"`},
	{"more names than a Node has", servingOf("win-a", slices.Repeat([]string{"10.0.0.5"}, maxNames+1)...), nil, Leave, "more than 64 names"},
	{"another entry's address, which the host claims", servingOf("win-a", "10.0.0.5"), func(_ *ask, k *Known) {
		k.Hosts[1].Address, k.Hosts[0].Address, k.Hosts[0].Name, k.Hosts[1].Name = "10.0.0.5", "10.0.0.8", "win-a", "win-b"
	}, Leave, `"10.0.0.5"`},
	{"another Node's name, which the resolver claims", servingOf("win-b", "master-0"), nil, Leave, `"master-0"`},
	{"a Machine's name, which the resolver claims", servingOf("win-b", "win-m"), nil, Leave, `"win-m"`},
	{"a service's name, which the resolver claims", servingOf("win-b", "kubernetes.default.svc"), nil, Leave, `"kubernetes.default.svc"`},
	{"no name and no address", servingOf("win-a"), nil, Leave, "no name and no address"},
	{"an email address", servingOf("win-a", "win-a"), func(a *ask, _ *Known) { a.template.EmailAddresses = []string{"a@b.c"} }, Leave, "email"},
	{"a URI", servingOf("win-a", "win-a"), func(a *ask, _ *Known) { a.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }, Leave, "URI"},
	{"client usage in a serving certificate", servingOf("win-a", "win-a"), func(a *ask, _ *Known) { a.usages = clientUsages }, Leave, "usages"},
	{"cloud-node-manager that another node asks for", cloudOf("win-m"), func(a *ask, _ *Known) { a.user = "system:node:win-b" }, Leave, `"system:node:win-b"`},
	{"cloud-node-manager that the bootstrapper asks for", cloudOf("win-b"), func(a *ask, _ *Known) { a.user = bootstrapper }, Leave, "not by the node"},
	{"cloud-node-manager in the group of the administrators", cloudOf("win-b"), func(a *ask, _ *Known) { a.template.Subject.Organization = []string{"system:masters"} }, Leave, "subject"},
	{"cloud-node-manager with a name", cloudOf("win-b"), func(a *ask, _ *Known) { a.template.DNSNames = []string{"win-b"} }, Leave, "extension"},
	{"cloud-node-manager on another platform", cloudOf("win-b"), func(_ *ask, k *Known) { k.Platform = bundle.PlatformNone }, Leave, "on Azure only"},
	{"cloud-node-manager before there is a Node", cloudOf("win-a"), nil, Leave, ""},

	// Another approver's.
	{"the beginning of a name", clientOf("win"), nil, Leave, ""},
	{"a name that begins like a host's", clientOf("win-a2"), nil, Leave, ""},
	{"a name in other letters", clientOf("WIN-A"), nil, Leave, ""},
	{"no name", clientOf(""), nil, Leave, ""},
	{"a Linux node of UPI", clientOf("worker-1"), nil, Leave, ""},
	{"a Machine's first certificate", clientOf("win-m"), nil, Leave, ""},
	{"a Machine's serving certificate", servingOf("win-m", "win-m"), nil, Leave, ""},
	{"a renewal by the node itself", clientOf("win-b"), func(a *ask, _ *Known) { a.user, a.groups = "system:node:win-b", nodeGroups }, Leave, ""},
	{"hybrid-overlay-node's", clientOf("win-a"), func(a *ask, _ *Known) {
		a.signer, a.user, a.groups = certificatesv1.KubeAPIServerClientSignerName, "system:node:win-a", nodeGroups
		a.template = subject("system:ovn-node:win-a", "system:ovn-nodes")
	}, Leave, ""},
	{"a kubelet's name for another signer", clientOf("win-a"), func(a *ask, _ *Known) { a.signer = certificatesv1.KubeAPIServerClientSignerName }, Leave, ""},
	{"another signer", clientOf("win-a"), func(a *ask, _ *Known) { a.signer = "example.com/signer" }, Leave, ""},
	{"cloud-node-manager of an unmanaged host", cloudOf("master-0"), nil, Leave, ""},
}

func TestDecide(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := decide(t, c.ask, c.change)
			if v.Decision != c.want {
				t.Errorf("%s: %s", v.Decision, v.Message)
			}
			if (v.Message == "") != (c.event == "") || !strings.Contains(v.Message, c.event) || (v.Message == "") != (v.Reason == "") {
				t.Errorf("event %q: %q, want one with %q", v.Reason, v.Message, c.event)
			}
			if v.Message != "" && (!strings.Contains(v.Message, "fix: ") || v.Host.ID() == "") {
				t.Errorf("the event names no fix or no host: %q", v.Message)
			}
		})
	}
}

func TestWhatIsDecidedIsLeftAlone(t *testing.T) {
	for _, status := range []certificatesv1.CertificateSigningRequestStatus{
		{Certificate: []byte("x")},
		{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}},
		{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}},
		{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}},
	} {
		csr := clientOf("win-a").object(t)
		csr.Status = status
		if v := DecideRequest(csr, known()); v.Decision != Leave || v.Message != "" {
			t.Errorf("%+v: %+v", status, v)
		}
	}
}

func TestTextsThatAreNoPlainRequest(t *testing.T) {
	right := clientOf("win-a").object(t).Spec.Request
	block, _ := pem.Decode(right)
	flipped := slices.Clone(block.Bytes)
	flipped[len(flipped)-1] ^= 1
	encoded := func(b pem.Block) string { return string(pem.EncodeToMemory(&b)) }
	for name, c := range map[string]struct{ text, event string }{
		"nothing":            {"", ""},
		"text":               {"hello", ""},
		"no DER":             {encoded(pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}), ""},
		"another PEM type":   {encoded(pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), ""},
		"two requests":       {string(right) + string(right), "more than the request"},
		"text after it":      {string(right) + "x", "more than the request"},
		"headers":            {encoded(pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"a": "b"}, Bytes: block.Bytes}), "more than the request"},
		"a wrong signature":  {encoded(pem.Block{Type: "CERTIFICATE REQUEST", Bytes: flipped}), "not signed"},
		"line breaks before": {"\n\n" + string(right), "approved"},
	} {
		csr := clientOf("win-a").object(t)
		csr.Spec.Request = []byte(c.text)
		v := DecideRequest(csr, known())
		if c.event == "approved" {
			if v.Decision != Approve {
				t.Errorf("%s: %+v", name, v)
			}
			continue
		}
		if v.Decision != Leave || !strings.Contains(v.Message, c.event) || (v.Message == "") != (c.event == "") {
			t.Errorf("%s: %+v, want %q", name, v, c.event)
		}
	}
}

func TestNodeName(t *testing.T) {
	for _, c := range []struct {
		ask  ask
		want string
	}{{clientOf("win-a"), "win-a"}, {servingOf("win-b", "x"), "win-b"}, {cloudOf("win-m"), "win-m"}, {clientOf(""), ""}} {
		if got := NodeName(c.ask.object(t)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := NodeName(&certificatesv1.CertificateSigningRequest{}); got != "" {
		t.Errorf("%q for an empty CSR", got)
	}
}

// FuzzDecide compares the rule with one sentence for each kind of certificate: exactly that is approved.
func FuzzDecide(f *testing.F) {
	for _, c := range []struct{ signer, user, group, cn, o, dns, ip string }{
		{certificatesv1.KubeAPIServerClientKubeletSignerName, bootstrapper, "system:authenticated", "system:node:win-a", "system:nodes", "", ""},
		{certificatesv1.KubeletServingSignerName, "system:node:win-a", "system:nodes", "system:node:win-a", "system:nodes", "win-a", "10.0.0.5"},
		{certificatesv1.KubeAPIServerClientSignerName, "system:node:win-b", "system:nodes", "windows-cloud-node-manager:win-b", "windows-cloud-node-managers", "", ""},
	} {
		for usages := range uint8(16) {
			f.Add(c.signer, c.user, c.group, c.cn, c.o, c.dns, c.ip, usages, usages%2 == 0)
		}
	}
	all := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth}
	f.Fuzz(func(t *testing.T, signer, user, group, cn, o, dns, ip string, usages uint8, own bool) {
		usages &= 1<<len(all) - 1 // the other bits stand for no usage
		a := ask{signer: signer, user: user, groups: []string{group}, template: subject(cn, o), key: keys.other}
		if own {
			a.key = keys.kubelet
		}
		for i, u := range all {
			if usages&(1<<i) != 0 {
				a.usages = append(a.usages, u)
			}
		}
		if dns != "" {
			a.template.DNSNames = []string{dns}
		}
		if address, err := netip.ParseAddr(ip); err == nil && address.Zone() == "" {
			a.template.IPAddresses = []net.IP{address.AsSlice()}
		} else {
			ip = ""
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
		if err != nil {
			return // such text cannot be in a request
		}
		csr := ask{signer: signer, user: user, groups: a.groups, usages: a.usages, template: a.template, key: a.key}.object(t)
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		v := DecideRequest(csr, known())
		isClient := usages&^2 == 1|4 && dns == "" && ip == ""
		isNode := func(name string) bool { return user == "system:node:"+name && group == "system:nodes" }
		right := signer == certificatesv1.KubeAPIServerClientKubeletSignerName && user == bootstrapper && cn == "system:node:win-a" && o == "system:nodes" && isClient && own ||
			signer == certificatesv1.KubeAPIServerClientSignerName && o == "windows-cloud-node-managers" && isClient &&
				(cn == "windows-cloud-node-manager:win-b" && isNode("win-b") || cn == "windows-cloud-node-manager:win-m" && isNode("win-m")) ||
			signer == certificatesv1.KubeletServingSignerName && o == "system:nodes" && usages&^2 == 1|8 && dns+ip != "" &&
				(cn == "system:node:win-a" && isNode("win-a") && isOneOf(dns, "win-a", "win-a.corp.example.com", "win-a.ptr.example.com") && isOneOf(ip, "10.0.0.5", "fd00::5", "::ffff:10.0.0.5") ||
					cn == "system:node:win-b" && isNode("win-b") && isOneOf(dns, "win-b", "win-b.example.com") && isOneOf(ip, "10.0.0.6", "::ffff:10.0.0.6"))
		if (v.Decision == Approve) != right {
			t.Errorf("%s (%s) for %q by %q in %q, subject %q %q, names %q %q, usages %b, own key %t", v.Decision, v.Message, signer, user, group, cn, o, dns, ip, usages, own)
		}
	})
}

// isOneOf reports whether a name or address is of the list, or there is none.
func isOneOf(text string, list ...string) bool {
	return text == "" || slices.ContainsFunc(list, func(l string) bool {
		a, err := netip.ParseAddr(text)
		b, notAddress := netip.ParseAddr(l)
		return err == nil && notAddress == nil && a == b || notAddress != nil && strings.EqualFold(l, text)
	})
}

// FuzzRequest gives texts that are no request, or half of one.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(""))
	f.Add(clientOf("win-a").object(f).Spec.Request)
	right := clientOf("win-a").object(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		csr := right.DeepCopy()
		csr.Spec.Request = text
		v := DecideRequest(csr, known())
		if v.Decision == Approve {
			block, rest := pem.Decode(text)
			if block == nil || len(strings.TrimSpace(string(rest))) > 0 {
				t.Errorf("approved: %q", text)
			}
		}
	})
}
