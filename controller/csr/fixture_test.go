package csr

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

const (
	namespace    = "operator"
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is what a host answers over SSH.
type host struct {
	facts bundle.Facts
	key   []byte
}

// network is a transport to hosts by their addresses. Others cannot be reached.
type network struct {
	hosts map[string]host
	// asked are the addresses of all commands.
	asked []string
}

func (n *network) answer(t remote.Target, c remote.Command) error {
	n.asked = append(n.asked, t.Host())
	h, ok := n.hosts[t.Host()]
	if !ok {
		return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errors.New("connection refused")}
	}
	var reply any = h.facts
	if strings.Contains(c.Line, "pending-key") {
		reply = remote.PendingKey{PublicKey: h.key}
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return c.Stdout(strings.NewReader(string(text)))
}

func (n *network) Connect(context.Context, remote.Target) error { return nil }

func (n *network) Run(_ context.Context, t remote.Target, c remote.Command) error {
	return n.answer(t, c)
}

func (n *network) Transfer(context.Context, remote.Target, func(remote.Files) error) error {
	return remote.ErrNoSFTP
}

func (n *network) Close() error { return nil }

// resolver knows names and addresses.
type resolver map[string][]string

func (r resolver) look(name string) ([]string, error) {
	if list, ok := r[name]; ok {
		return list, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// LookupHost returns an address as its own, as net.Resolver does.
func (r resolver) LookupHost(_ context.Context, name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	return r.look(name)
}

func (r resolver) LookupAddr(_ context.Context, address string) ([]string, error) {
	return r.look(address)
}

// key is one of two: that of the kubelet of the host, and another one.
type key struct{ private *ecdsa.PrivateKey }

func newKey() key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key{private}
}

func (k key) public(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	must(t, err)
	return der
}

var kubelet, otherKey = newKey(), newKey()

// ask is a certificate signing request of a form that may be approved.
type ask struct {
	signer, user, subject, group string
	usage                        certificatesv1.KeyUsage
	names                        []string
}

func (a ask) object(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := x509.CertificateRequest{Subject: pkix.Name{CommonName: a.subject, Organization: []string{a.group}}}
	for _, name := range a.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, kubelet.private)
	must(t, err)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "uid-1"}}
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: a.signer, Username: a.user, Groups: []string{"system:nodes", "system:authenticated"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, a.usage}, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}
	return csr
}

// first is the request with which a host joins, serving that for its kubelet's server, cloud that of cloud-node-manager.
func first(node string) ask {
	return ask{certificatesv1.KubeAPIServerClientKubeletSignerName, bootstrapper, "system:node:" + node, "system:nodes", certificatesv1.UsageClientAuth, nil}
}

func serving(node string, names ...string) ask {
	return ask{certificatesv1.KubeletServingSignerName, "system:node:" + node, "system:node:" + node, "system:nodes", certificatesv1.UsageServerAuth, names}
}

func cloud(node string) ask {
	const user = "windows-cloud-node-manager"
	return ask{certificatesv1.KubeAPIServerClientSignerName, "system:node:" + node, user + ":" + node, user + "s", certificatesv1.UsageClientAuth, nil}
}

// cluster has everything that a request is judged by: the operator's inputs, the cluster's objects, and answers of hosts and the resolver.
type cluster struct {
	inputs   desired.Hosts
	records  []record.Record
	objects  []client.Object
	network  network
	resolver resolver
}

// newCluster has one entry, 192.0.2.5, whose host calls itself WIN-A and waits for a certificate.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{resolver: resolver{}, network: network{hosts: map[string]host{"192.0.2.5": {factsOf("WIN-A", "192.0.2.5"), kubelet.public(t)}}}}
	c.inputs.Cluster = render.Cluster{Platform: bundle.PlatformNone}
	c.inputs.Reserved = gather.Reserved{
		Names: []string{"api-int.example.com", "api.example.com", "192.0.2.100"}, Domains: []string{"apps.example.com"},
		Networks: []string{"172.30.0.0/16", "10.132.0.0/14"},
	}
	c.inputs.All = []render.Node{{Backing: render.BackingInstance, Address: "192.0.2.5", Username: "Administrator"}}
	return c
}

func factsOf(name string, addresses ...string) bundle.Facts {
	return bundle.Facts{Schema: bundle.FactsSchema, HostName: name, Addresses: addresses, OSBuild: "10.0.20348"}
}

// reached makes this process have seen the hosts before, so that it knows what they call themselves.
func (c *cluster) reached(t testing.TB, h *hosts.Hosts) {
	t.Helper()
	for _, n := range c.inputs.All {
		if _, ok := c.network.hosts[n.Address]; ok && n.Backing == render.BackingInstance {
			target, err := h.TargetOf(record.OfEntry(n.Address), n.Username, n.Address)
			must(t, err)
			_, _, err = h.AskPendingKey(t.Context(), target)
			must(t, err)
		}
	}
	c.network.asked = nil
}

// approver judges requests of the cluster, with a clock that the test sets.
type approver struct {
	*Approver
	recorder *events.FakeRecorder
	now      time.Duration
}

// approver returns one whose cluster has the request.
func (c *cluster) approver(t testing.TB, r ask) *approver {
	t.Helper()
	live := fake.NewClientBuilder().WithObjects(append(c.objects, r.object(t))...).WithObjects(c.configMaps(t)...).WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).Build()
	records := &hosts.Records{Live: live, Client: live, Cache: live, Namespace: namespace}
	c.inputs.Records = record.NewSet(c.records...)
	program, err := remote.FileProgram("controller.go") // it is never sent
	must(t, err)
	reach := hosts.New(hosts.Options{Transports: hosts.Transports{Kept: &c.network, Fresh: &c.network}, Program: program})
	c.reached(t, reach)
	a := &approver{recorder: events.NewFakeRecorder(100)}
	a.Approver = &Approver{
		Inputs: func(context.Context) (*desired.Hosts, error) { return &c.inputs, nil }, Hosts: reach, Records: records, Resolver: c.resolver,
		Live: live, Client: live, Namespace: namespace, Events: a.recorder, Log: logr.Discard(), Elapsed: func() time.Duration { return a.now },
	}
	return a
}

// configMaps are those of the records.
func (c *cluster) configMaps(t testing.TB) []client.Object {
	t.Helper()
	all := map[string]*corev1.ConfigMap{}
	for _, r := range c.records {
		name := record.ConfigMapName(r.ID())
		if all[name] == nil {
			all[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{hosts.RecordsLabel: "true"}}, Data: map[string]string{}}
		}
		text, err := r.Encode()
		must(t, err)
		all[name].Data[string(r.ID())] = text
	}
	var list []client.Object
	for _, cm := range all {
		list = append(list, cm)
	}
	return list
}

// reconcile judges the request once, and returns the events.
func (a *approver) reconcile(t testing.TB) (reconcile.Result, []string, error) {
	t.Helper()
	result, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "csr-1"}})
	var list []string
	for len(a.recorder.Events) > 0 {
		list = append(list, <-a.recorder.Events)
	}
	return result, list, err
}

// approved reports whether the request has the condition.
func (a *approver) approved(t testing.TB) bool {
	t.Helper()
	var csr certificatesv1.CertificateSigningRequest
	must(t, a.Live.Get(t.Context(), client.ObjectKey{Name: "csr-1"}, &csr))
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved && c.Status == corev1.ConditionTrue && c.Reason == "WMCOApprove"
	})
}

// node is a Node of the cluster.
func node(name, os string, annotations map[string]string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: os}, Annotations: annotations}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}
