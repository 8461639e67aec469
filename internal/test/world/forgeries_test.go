package world

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/world/api"
)

// names is the resolver of the operators. An attacker writes the names of their own address in it.
type names struct {
	mu sync.Mutex
	// of are the names of addresses, at the addresses of names.
	of, at map[string][]string
}

// LookupHost implements csr.Resolver.
func (x *names) LookupHost(_ context.Context, host string) ([]string, error) {
	return x.look(x.at, host)
}

// LookupAddr implements csr.Resolver.
func (x *names) LookupAddr(_ context.Context, address string) ([]string, error) {
	return x.look(x.of, address)
}

func (x *names) look(in map[string][]string, what string) ([]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if in[what] == nil {
		return nil, &net.DNSError{Err: "no such host", Name: what, IsNotFound: true}
	}
	return slices.Clone(in[what]), nil
}

// setNames has the resolver know names of an address; none is none.
func (x *names) setNames(address string, list []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[string][]string{}
	}
	x.of[address] = list
}

// setAddresses has the resolver know addresses of a name.
func (x *names) setAddresses(name string, list []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at[name] = list
}

// Addresses of the load balancers of the cluster, of a Linux node, and one that no host has.
const (
	addressOfAPI    = "10.0.0.2"
	addressOfRoutes = "10.0.0.3"
	linuxNode       = "linux-0"
	addressOfLinux  = "10.0.0.4"
	unknownAddress  = "10.2.9.9"
)

// knownNames are those that the resolver has for the cluster of golden/clusters.
func knownNames() *names {
	return &names{at: map[string][]string{
		"api.demo.example.com": {addressOfAPI}, "api-int.demo.example.com": {addressOfAPI}, "console-openshift-console.apps.demo.example.com": {addressOfRoutes},
	}}
}

// asked is a request for a certificate.
type asked struct {
	by       user.Info
	signer   string
	usages   []certificatesv1.KeyUsage
	template x509.CertificateRequest
	key      *ecdsa.PrivateKey
	// after is what follows the request in its text.
	after string
}

const bootstrapper = "node-bootstrapper"

// asBootstrapper is whoever has the token that hosts join with.
func asBootstrapper() user.Info {
	return serviceaccount.UserInfo("openshift-machine-config-operator", bootstrapper, "")
}

func asNode(name string) user.Info {
	return &user.DefaultInfo{Name: "system:node:" + name, Groups: []string{user.NodesGroup, user.AllAuthenticated}}
}

func subjectOf(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{user.NodesGroup}}
}

// servingRequest is what the kubelet of a node asks for.
func servingRequest(node, address string) *asked {
	return &asked{
		by: asNode(node), signer: certificatesv1.KubeletServingSignerName, usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		template: x509.CertificateRequest{Subject: subjectOf(node), DNSNames: []string{node}, IPAddresses: []net.IP{net.ParseIP(address)}},
	}
}

// firstRequest is what a host asks for to join.
func firstRequest(node string) *asked {
	return &asked{
		by: asBootstrapper(), signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		template: x509.CertificateRequest{Subject: subjectOf(node)},
	}
}

// forms are the ways in which a request may differ from that of a kubelet, whoever it is for. None of them may be approved.
func forms() map[string]func(*asked) {
	return map[string]func(*asked){
		"of an administrator": func(a *asked) {
			a.by = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
		},
		"of another node": func(a *asked) { a.by = asNode("another") },
		"of a node without groups": func(a *asked) {
			a.by = &user.DefaultInfo{Name: a.by.GetName(), Groups: []string{user.SystemPrivilegedGroup}}
		},
		"of administrators": func(a *asked) { a.template.Subject.Organization = []string{user.SystemPrivilegedGroup} },
		"also of administrators": func(a *asked) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, user.SystemPrivilegedGroup)
		},
		"with a unit":      func(a *asked) { a.template.Subject.OrganizationalUnit = []string{"unit"} },
		"for other usages": func(a *asked) { a.usages = append(a.usages, certificatesv1.UsageCertSign) },
		"with an email":    func(a *asked) { a.template.EmailAddresses = []string{"a@example.com"} },
		"with a URI":       func(a *asked) { a.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com"}} },
		"for a CA": func(a *asked) {
			a.template.ExtraExtensions = append(a.template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}})
		},
		"with another one after it": func(a *asked) {
			a.after = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
		},
	}
}

// ask makes a request, and returns its name.
func (w *world) ask(a *asked) (string, error) {
	if a.key == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return "", err
		}
		a.key = key
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
	if err != nil {
		return "", err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})) + a.after
	c, err := client.New(w.server.Config(a.by), client.Options{Scheme: w.Scheme()})
	if err != nil {
		return "", err
	}
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: []byte(text), SignerName: a.signer, Usages: a.usages},
	}
	err = w.attempt(func() error { return c.Create(w.ctx, r) })
	return r.Name, err
}

// strangeNames are those of other hosts, of the cluster, and of no host. A trailing dot is as none to a resolver.
func (w *world) strangeNames(of string) []string {
	list := []string{
		"localhost", "host.localhost", "kubernetes", "kubernetes.default", "openshift", "web.default.svc", "web.default.svc.cluster.local", "api.demo.example.com",
		"api-int.demo.example.com", "console-openshift-console.apps.demo.example.com", "apps.demo.example.com", "*.example.com", linuxNode, of + ".",
	}
	nodes := w.observer.Snapshot() // the name of a Node that was removed is free
	for name := range w.owners() {
		if _, is := nodes[name]; is && name != of && (w.machines[name] == nil || !w.machines[name].ends) && (w.hosts[name] == nil || w.hosts[name].listed) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// ofCluster are addresses that no host may have for its own.
func ofCluster() []string {
	return []string{addressOfAPI, addressOfRoutes, addressOfLinux, "127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "172.30.0.1", "10.128.0.9", "10.132.0.9"}
}

// strangeAddresses are those, those of other nodes, and one at which the host is not reached.
func (w *world) strangeAddresses(of string) []string {
	list := append(ofCluster(), unknownAddress)
	for name, address := range w.owners() {
		if name != of {
			list = append(list, address)
		}
	}
	slices.Sort(list)
	return list
}

// owners are the addresses of all nodes that are, or may become, instances or those of Machines, by their names.
func (w *world) owners() map[string]string {
	all := map[string]string{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, m := range w.machines {
		all[name] = m.address
	}
	for name, h := range w.hosts {
		if !h.impostor {
			all[name] = h.address
		}
	}
	return all
}

// forgeRequests has an attacker who has everything of one host ask for certificates that this host must not get: its administrator's account, the identity
// of its node, the token with which hosts join, its records in the DNS, and an answer at the addresses of the cluster. Afterwards it is a host as before.
func (w *world) forgeRequests(t testing.TB, h *host) {
	t.Helper()
	w.disturbHost(h)
	made := w.forgeAll(t, h)
	pause(w.ctx, 10*time.Minute)
	for _, name := range made {
		w.try(t, "the end of a request", func() error {
			return client.IgnoreNotFound(w.Delete(w.ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		})
	}
	w.endClaims(t, h)
	w.disturbHost(h)
}

// claim has a host claim names and addresses, and answer at them.
func (w *world) claim(t testing.TB, h *host, list, addresses []string) {
	t.Helper()
	w.names.setNames(h.address, list)
	w.setNameOf(h, append([]string{h.address}, addresses...)...)
	must(t, h.Host.Edit(w.ctx, func(s *simulation.State) { s.Facts.Addresses = append([]string{h.address}, addresses...) }))
	for _, a := range ofCluster() {
		w.network.Connect(a, h.ssh)
	}
}

// endClaims has a host claim what is its own.
func (w *world) endClaims(t testing.TB, h *host) {
	t.Helper()
	w.names.setNames(h.address, nil)
	w.setNameOf(h, h.address)
	must(t, h.Host.Edit(w.ctx, func(s *simulation.State) { s.Facts.Addresses = []string{h.address} }))
	for _, a := range ofCluster() {
		w.network.Connect(a, nil)
	}
}

// forgeAll makes all requests of an attacker, and returns their names.
func (w *world) forgeAll(t testing.TB, h *host) (made []string) {
	t.Helper()
	strange, addresses := w.strangeNames(h.name), w.strangeAddresses(h.name)
	w.claim(t, h, strange, addresses)
	ask := func(a *asked) {
		name, err := w.ask(a)
		must(t, err)
		made = append(made, name)
	}
	for _, name := range slices.Sorted(maps.Keys(forms())) {
		for _, a := range []*asked{servingRequest(h.name, h.address), firstRequest(h.name)} {
			forms()[name](a)
			if a.signer == certificatesv1.KubeletServingSignerName || len(a.template.EmailAddresses)+len(a.template.URIs) == 0 {
				ask(a)
			}
		}
	}
	ask(firstRequest(h.name))
	for _, name := range strange {
		a := servingRequest(h.name, h.address)
		a.template.DNSNames = append(a.template.DNSNames, name)
		ask(a)
		ask(firstRequest(name))
	}
	for _, address := range append(addresses, "10.2.9.8") { // the last one it does not claim
		a := servingRequest(h.name, h.address)
		a.template.IPAddresses = append(a.template.IPAddresses, net.ParseIP(address))
		ask(a)
	}
	many := servingRequest(h.name, h.address)
	for range 64 {
		many.template.DNSNames = append(many.template.DNSNames, h.name)
	}
	ask(many)
	return made
}

// judgeApproval returns what is wrong about the approval of a request: it has to be that of a kubelet, for a key that its host has, or by the host itself,
// and for its own name and address.
func (w *world) judgeApproval(name string) string {
	var r certificatesv1.CertificateSigningRequest
	if err := w.Get(w.ctx, client.ObjectKey{Name: name}, &r); err != nil {
		return err.Error()
	}
	q, err := api.ParseRequest(&r)
	if err != nil {
		return err.Error()
	}
	node, _ := strings.CutPrefix(q.Subject.CommonName, "system:node:")
	w.mu.Lock()
	h := w.hosts[node]
	w.mu.Unlock()
	owner := w.owners()[node]
	_, rest := pem.Decode(r.Spec.Request)
	const mostNames = 64
	switch extensions := len(q.Extensions); {
	case owner == "":
		return "no host has the name " + node
	case len(bytes.TrimSpace(rest)) > 0:
		return node + " asks for more than one certificate"
	case !slices.Equal(q.Subject.Organization, []string{user.NodesGroup}) || len(q.Subject.Names) != 2: //nolint:mnd // the name and the group
		return fmt.Sprintf("%s asks for %s", node, q.Subject)
	case r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName:
		switch {
		case r.Spec.Username != asBootstrapper().GetName():
			return r.Spec.Username + " asks for the first certificate of " + node
		case h == nil || !h.hasKey(q.PublicKey):
			return node + " has another key"
		case extensions > 0 || !isUsedFor(r, certificatesv1.UsageClientAuth):
			return fmt.Sprintf("%s asks for %d extensions and %v", node, extensions, r.Spec.Usages)
		}
	case r.Spec.Username != q.Subject.CommonName || !slices.Contains(r.Spec.Groups, user.NodesGroup):
		return r.Spec.Username + " asks for " + node
	case extensions != 1 || !isUsedFor(r, certificatesv1.UsageServerAuth) || len(q.EmailAddresses)+len(q.URIs) > 0 || len(q.DNSNames)+len(q.IPAddresses) > mostNames:
		return fmt.Sprintf("%s asks for %d extensions, %v, %v, %v, and %d names", node, extensions, r.Spec.Usages, q.EmailAddresses, q.URIs, len(q.DNSNames))
	}
	for _, a := range q.IPAddresses {
		if a.String() != owner && (h == nil || !slices.Contains(h.had, a.String())) {
			return node + " is not at " + a.String()
		}
	}
	for _, n := range q.DNSNames {
		if n != node {
			return node + " has not the name " + n
		}
	}
	return ""
}

// isUsedFor reports whether a certificate is for one kind of use alone.
func isUsedFor(r certificatesv1.CertificateSigningRequest, is certificatesv1.KeyUsage) bool {
	return !slices.ContainsFunc(r.Spec.Usages, func(u certificatesv1.KeyUsage) bool {
		return u != is && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment
	})
}

// addLinux makes the Node of a Linux machine.
func (w *world) addLinux(t testing.TB) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: linuxNode, Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	must(t, w.Create(w.ctx, n))
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addressOfLinux}, {Type: corev1.NodeHostName, Address: linuxNode}}
	must(t, w.Status().Update(w.ctx, n))
}

// TestForgedRequests: whoever has a whole host, its DNS and the bootstrap token gets no certificate but its own, before and after it has joined, and neither
// does another host that joins lose its own.
func TestForgedRequests(t *testing.T) {
	o := options{nodes: 2, hosts: 2, certificates: 6 * time.Hour, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	for _, dns := range []bool{false, true} {
		t.Run(fmt.Sprintf("its entry is a name: %t", dns), func(t *testing.T) {
			inWorld(t, o, func(t *testing.T, w *world) { forge(t, w, w.addHostWith(t, dns)) })
		})
	}
}

// forge has a host ask for what it must not get, before and after it has joined.
func forge(t *testing.T, w *world, h *host) {
	t.Helper()
	joining := w.forgeAll(t, h)
	w.listHost(t, h, true)
	pause(w.ctx, calmFor/2) // for each request the host is asked, over SSH
	for _, name := range joining {
		must(t, w.Delete(w.ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	w.endClaims(t, h)
	w.rest(t)
	own, err := w.ask(servingRequest(h.name, h.address))
	must(t, err)
	w.forgeRequests(t, h)
	var r certificatesv1.CertificateSigningRequest
	must(t, w.Get(w.ctx, client.ObjectKey{Name: own}, &r))
	if !slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}) {
		t.Errorf("the request of the host itself is not approved: %+v", r.Status)
	}
	w.rest(t)
	w.print(t)
}
