package jointest_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/csr/certificates"
	"wmco/controller/gather"
	"wmco/internal/test/simnode/overlay"
)

const (
	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName
	notApproved   = string(certificates.NotApproved)
)

// impostor requests a certificate that the operator must not approve.
type impostor struct {
	as     *rest.Config
	node   string
	signer string
	usages []certificatesv1.KeyUsage
	dns    []string
	ip     string
	// says is a part of the events about the request; empty if there must be none.
	says string
}

var (
	clientUsages  = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	servingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
)

// request returns a request for a certificate with a new key.
func (i impostor) request(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return i.requestWith(t, name, key)
}

func (i impostor) requestWith(t *testing.T, name string, key crypto.Signer) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + i.node, Organization: []string{"system:nodes"}}, DNSNames: i.dns}
	if i.ip != "" {
		template.IPAddresses = []net.IP{net.ParseIP(i.ip)}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	must(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: i.signer, Usages: i.usages,
		},
	}
}

// bootstrapper is the configuration of a client that has the token with which hosts join.
func (w *world) bootstrapper() *rest.Config {
	w.t.Helper()
	var secret corev1.Secret
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "openshift-machine-config-operator", Name: "node-bootstrapper-token"}, &secret))
	config := w.anonymous()
	config.BearerToken = string(secret.Data["token"])
	if w.memory != nil {
		w.memory.server.Wrap(config)
	}
	return config
}

// user is the configuration of a client with a certificate.
func (w *world) user(name string, groups ...string) *rest.Config {
	w.t.Helper()
	if w.memory != nil {
		return w.memory.configOf(rest.ImpersonationConfig{UserName: name, Groups: groups})
	}
	config, err := server.ControlPlane(w.t).AddUser(name, groups...)
	must(w.t, err)
	return config
}

// permitRequests lets a group request certificates.
func (w *world) permitRequests(group string) {
	w.t.Helper()
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: group}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
	}})
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: group},
	})
}

// post creates an object as a client.
func (w *world) post(as *rest.Config, o client.Object) {
	w.t.Helper()
	c, err := client.New(as, client.Options{Scheme: w.Scheme()})
	must(w.t, err)
	must(w.t, c.Create(w.t.Context(), o))
}

// withoutApproval takes the permission to approve first certificates of kubelets from the operator, and returns what gives it back. So long,
// a host waits with its key, and no Node is made.
func (w *world) withoutApproval() (giveBack func()) {
	w.t.Helper()
	var role rbacv1.ClusterRole
	at := client.ObjectKey{Name: "windows-machine-config-operator"}
	must(w.t, w.Get(w.t.Context(), at, &role))
	i := slices.IndexFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "signers") })
	all := role.Rules[i].ResourceNames
	put := func(names []string, allowed bool) {
		role.Rules[i].ResourceNames = names
		must(w.t, w.Update(w.t.Context(), &role))
		eventually(w.t, "the permissions of the operator", func() bool { return w.mayApprove() == allowed })
	}
	put(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == clientSigner }), false)
	return func() { put(all, true) }
}

func (w *world) mayApprove() bool {
	w.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + gather.OperatorNamespace + ":windows-machine-config-operator",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: certificatesv1.GroupName, Resource: "signers", Name: clientSigner, Verb: "approve"},
	}}
	must(w.t, w.Create(w.t.Context(), review))
	return review.Status.Allowed
}

// requests returns all certificate signing requests.
func (w *world) requests() []certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	must(w.t, w.List(w.t.Context(), &list))
	return list.Items
}

// notesOn returns the events about a request.
func (w *world) notesOn(csr string) []string {
	w.t.Helper()
	return slices.DeleteFunc(w.events(notApproved, "windows-instances"), func(note string) bool { return !strings.HasPrefix(note, csr+": ") })
}

// TestImpostorsGetNoCertificate: requests in the name of hosts, before and after those have joined, by holders of the bootstrap token, by
// nodes and by others.
func TestImpostorsGetNoCertificate(t *testing.T) {
	w := newWorld(t)
	w.machine("machine-a", "192.0.2.11")
	w.machine("instance-b", "192.0.2.12")
	w.machineObject("machine-a", "192.0.2.11")
	w.instances("192.0.2.12")
	giveBack := w.withoutApproval()
	token, node := w.bootstrapper(), w.user("system:node:instance-b", "system:nodes")
	// The API server itself refuses requests of one node in the name of another (NodeRestriction), but only of members of system:nodes.
	w.permitRequests("requesters")
	other, alike, somebody := w.user("system:node:machine-a", "requesters"), w.user("system:node:instance-b", "requesters"), w.user("somebody", "requesters")
	before := map[string]impostor{
		"perfect-but-for-the-key":         {token, "instance-b", clientSigner, clientUsages, nil, "", "its key is not the one that the host waits with"},
		"requested-by-somebody":           {somebody, "instance-b", clientSigner, clientUsages, nil, "", "it was requested by"},
		"requested-like-another-node":     {other, "instance-b", clientSigner, clientUsages, nil, "", "it was requested by"},
		"a-name-that-nobody-has":          {token, "instance-x", clientSigner, clientUsages, nil, "", ""},
		"a-part-of-the-name":              {token, "instance", clientSigner, clientUsages, nil, "", ""},
		"the-name-and-more":               {token, "instance-b-2", clientSigner, clientUsages, nil, "", ""},
		"usages-of-a-server":              {token, "instance-b", clientSigner, servingUsages, nil, "", "its usages are not"},
		"a-client-with-a-name":            {token, "instance-b", clientSigner, clientUsages, []string{"instance-b"}, "", "it asks for the extension"},
		"serving-by-the-token":            {token, "instance-b", servingSigner, servingUsages, nil, "192.0.2.12", "it was requested by"},
		"serving-like-another-node":       {other, "instance-b", servingSigner, servingUsages, nil, "192.0.2.12", "it was requested by"},
		"serving-without-the-group":       {alike, "instance-b", servingSigner, servingUsages, nil, "192.0.2.12", "it was requested by"},
		"serving-with-a-name-more":        {node, "instance-b", servingSigner, servingUsages, []string{"instance-b", "machine-a"}, "192.0.2.12", `does not have the name "machine-a"`},
		"serving-with-that-of-the-API":    {node, "instance-b", servingSigner, servingUsages, []string{"kubernetes.default.svc"}, "192.0.2.12", "does not have the name"},
		"serving-with-another-address":    {node, "instance-b", servingSigner, servingUsages, nil, "192.0.2.11", "does not have the address"},
		"serving-with-the-loopback":       {node, "instance-b", servingSigner, servingUsages, nil, "127.0.0.1", "does not have the address"},
		"serving-with-usages-of-a-client": {node, "instance-b", servingSigner, clientUsages, nil, "192.0.2.12", "its usages are not"},
	}
	w.operate()
	eventually(t, "the request of the host", func() bool { return w.pendingOf("instance-b") != nil })
	w.try(before)
	if w.hasNode("instance-b") {
		t.Fatal("a Node was made before its certificate was approved")
	}
	giveBack()
	for _, name := range []string{"machine-a", "instance-b"} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
	}
	first := w.firstOf("instance-b")
	after := map[string]impostor{
		"perfect-after-the-node-exists":  {token, "instance-b", clientSigner, clientUsages, nil, "", "a Node of this name exists"},
		"a-renewal-by-the-token":         {token, "instance-b", servingSigner, servingUsages, nil, "192.0.2.12", "it was requested by"},
		"serving-with-a-name-from-after": {node, "instance-b", servingSigner, servingUsages, []string{"localhost"}, "192.0.2.12", "does not have the name"},
	}
	w.try(after)
	replay := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "replay"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: first.Spec.Request, SignerName: first.Spec.SignerName, Usages: first.Spec.Usages,
	}}
	w.post(token, replay)
	eventually(t, "an event about the replay", func() bool { return len(w.notesOn("replay")) > 0 })
	w.approvedOnly(before, after, map[string]impostor{"replay": {}})
}

// try makes requests, and waits for the events about them.
func (w *world) try(impostors map[string]impostor) {
	w.t.Helper()
	for name, i := range impostors {
		w.post(i.as, i.request(w.t, name))
	}
	for name, i := range impostors {
		if i.says == "" {
			eventually(w.t, "the verdict on "+name, func() bool {
				return strings.Contains(w.log.String(), "in a certificate signing request\" logger=csr csr="+name+" ")
			})
			continue
		}
		eventually(w.t, "an event about "+name, func() bool { return len(w.notesOn(name)) > 0 })
		if note := w.notesOn(name)[0]; !strings.Contains(note, i.says) || !strings.Contains(note, "fix: ") {
			w.t.Errorf("%s: %s", name, note)
		}
	}
}

// pendingOf returns the request with which a host joins, nil before it is made.
func (w *world) pendingOf(node string) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	for _, csr := range w.requests() {
		if certificates.NodeName(&csr) == node && strings.HasPrefix(csr.Name, "node-csr-") {
			return &csr
		}
	}
	return nil
}

func (w *world) firstOf(node string) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	csr := w.pendingOf(node)
	if csr == nil {
		w.t.Fatalf("the first request of %s is gone", node)
	}
	return csr
}

// approvedOnly checks who was approved by whom, once all requests were judged.
func (w *world) approvedOnly(impostors ...map[string]impostor) {
	w.t.Helper()
	says, network, kubelet := map[string]string{}, 0, 0
	for _, list := range impostors {
		for name, i := range list {
			says[name] = i.says
		}
	}
	for _, csr := range w.requests() {
		notes := w.notesOn(csr.Name)
		_, isImpostor := says[csr.Name]
		switch {
		case isImpostor && (len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0):
			w.t.Errorf("%s: %v", csr.Name, csr.Status.Conditions)
		case isImpostor && csr.Name != "replay" && (says[csr.Name] == "") != (len(notes) == 0), !isImpostor && len(notes) > 0:
			w.t.Errorf("%s: events %q", csr.Name, notes)
		case isImpostor:
		case strings.HasPrefix(commonName(w.t, &csr), overlay.UserPrefix):
			network++
			if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Reason != "SimulatedCluster" {
				w.t.Errorf("the request of hybrid-overlay-node %s: %v", csr.Name, csr.Status.Conditions)
			}
		case certificates.NodeName(&csr) == "instance-b":
			kubelet++
			if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Reason != certificates.ApprovalReason {
				w.t.Errorf("the kubelet's request %s: %v", csr.Name, csr.Status.Conditions)
			}
		}
	}
	if network < 2 || kubelet < 2 {
		w.t.Errorf("%d requests of hybrid-overlay-node and %d of the instance's kubelet", network, kubelet)
	}
}

func commonName(t *testing.T, csr *certificatesv1.CertificateSigningRequest) string {
	t.Helper()
	block, _ := pem.Decode(csr.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	return parsed.Subject.CommonName
}
