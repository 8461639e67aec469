package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/manifests"
)

var server testenv.Environment

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // a TokenRequest has no managed fields, of which a library tells
	os.Exit(server.Main(m))
}

// call is a request, and who makes it: empty is an administrator.
type call struct {
	method, path, body string
	as                 string
}

const (
	merge     = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	apply     = "application/apply-patch+yaml"

	node    = "/api/v1/nodes"
	secret  = "/api/v1/namespaces/default/secrets"
	maps    = "/api/v1/namespaces/default/configmaps"
	pods    = "/api/v1/namespaces/default/pods"
	budget  = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	mirror  = "/apis/config.openshift.io/v1/imagedigestmirrorsets"
	proxy   = "/apis/config.openshift.io/v1/proxies"
	cluster = "/apis/rbac.authorization.k8s.io/v1"
	roles   = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
	csr     = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	states  = "/apis/windowsmachineconfig.openshift.io/v1alpha1/namespaces/default/windowsnodesstatuses"
	lease   = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	beats   = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	tokenOf = "/api/v1/namespaces/default/serviceaccounts/bootstrapper/token"

	account = "system:serviceaccount:default:reader"
	unknown = "system:anonymous"
	kubelet = "system:node:contract-a"
)

// calls are what the operator, the node agents and the tests ask of an API server, one after the other.
func calls() []call {
	pod := func(name, extra string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","labels":{"app":"web"}},"spec":{"nodeName":"contract-a","terminationGracePeriodSeconds":30,"containers":[{"name":"c","image":"i"}]` + extra + `}}`
	}
	return []call{
		{"POST", node, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"contract-a","labels":{"kubernetes.io/os":"windows"},"annotations":{"a":"1"}},"status":{"phase":"Running"}}`, ""},
		{"POST", node, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"contract-a"}}`, ""},
		{"GET", node + "/contract-a", "", ""},
		{"GET", node + "/contract-none", "", ""},
		{"GET", node + "?fieldSelector=metadata.name%3Dcontract-a", "", ""},
		{"GET", node + "?labelSelector=kubernetes.io/os%3Dlinux", "", ""},
		{"GET", node + "?fieldSelector=spec.none%3Da", "", ""},
		{"PATCH " + merge, node + "/contract-a", `{"spec":{"unschedulable":true},"status":{"phase":"Terminated"}}`, ""},
		{"PATCH " + strategic, node + "/contract-a/status", `{"metadata":{"annotations":{"b":"2"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, kubelet},
		{"PATCH " + strategic, node + "/contract-a/status", `{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Other","status":"True"}]}}`, kubelet},
		{"POST", node, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"contract-b"}}`, ""},
		{"PATCH " + strategic, node + "/contract-b/status", `{"status":{"conditions":[]}}`, kubelet},
		{"PATCH " + merge, node + "/contract-a", `{"metadata":{"resourceVersion":"1","annotations":{"c":"3"}}}`, ""},
		{"PATCH " + merge, node + "/contract-a", `{"metadata":{"uid":"11111111-1111-1111-1111-111111111111"}}`, ""},
		{"DELETE", node + "/contract-a", `{"preconditions":{"uid":"11111111-1111-1111-1111-111111111111"}}`, ""},
		{"PATCH " + apply, maps + "/applied?fieldManager=one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"a":"1","b":"2"}}`, ""},
		{"PATCH " + apply, maps + "/applied?fieldManager=two", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"a":"other"}}`, ""},
		{"PATCH " + apply, maps + "/applied?fieldManager=two&force=true", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"c":"3"}}`, ""},
		{"PATCH " + apply, maps + "/applied?fieldManager=one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"a":"1"}}`, ""},
		{"PATCH " + apply, maps + "/applied", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`, ""},
		{"POST", maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept","finalizers":["example.com/keep"]}}`, ""},
		{"DELETE", maps + "/kept", "", ""},
		{"GET", maps + "/kept", "", ""},
		{"PATCH " + merge, maps + "/kept", `{"metadata":{"finalizers":null}}`, ""},
		{"GET", maps + "/kept", "", ""},
		{"POST", maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Not a name"}}`, ""},
		{"POST", maps, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other-kind"}}`, ""},
		{"POST", maps, `{"apiVersion":"v1",`, ""},
		{"POST", maps + "?dryRun=All", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dry"}}`, ""},
		{"GET", maps + "/dry", "", ""},
		{"PUT", maps + "/applied", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","resourceVersion":"1"},"data":{}}`, ""},
		{"PUT", maps + "/none", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"none","resourceVersion":"1"},"data":{}}`, ""},
		{"POST", secret, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"strings"},"type":"Opaque","stringData":{"a":"1"}}`, ""},
		{"PATCH " + apply, secret + "/strings?fieldManager=one", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"strings"},"stringData":{"b":"2"}}`, ""},
		{"PATCH " + merge, secret + "/strings", `{"stringData":{"a":"3"}}`, ""},
		{"POST", pods, pod("stays", ""), ""},
		{"POST", pods, pod("pending", ""), ""},
		{"POST", pods + "/pending/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"pending","namespace":"default"}}`, ""},
		{"POST", pods, pod("evicted", ""), ""},
		{"PATCH " + strategic, pods + "/evicted/status", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, ""},
		{"PATCH " + strategic, pods + "/stays/status", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, ""},
		{"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dcontract-a", "", ""},
		{"POST", budget, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}}`, ""},
		{"PATCH " + merge, budget + "/web/status", `{"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}}`, ""},
		{"POST", pods + "/evicted/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"evicted","namespace":"default"}}`, ""},
		{"POST", pods + "/stays/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"stays","namespace":"default"}}`, ""},
		{"POST", pods + "/none/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"none","namespace":"default"}}`, ""},
		{"DELETE", pods + "/evicted?gracePeriodSeconds=0", "", ""},
		{"GET", pods + "/evicted", "", ""},
		{"POST", mirror, `{"apiVersion":"config.openshift.io/v1","kind":"ImageDigestMirrorSet","metadata":{"name":"contract"},"spec":{"imageDigestMirrors":[{"source":"a.example.com","mirrors":["b.example.com"]}]}}`, ""},
		{"PATCH " + merge, mirror + "/contract", `{"spec":{"imageDigestMirrors":[{"source":"c.example.com","mirrors":["b.example.com"]}]}}`, ""},
		{"PATCH " + merge, mirror + "/contract", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"PATCH " + strategic, mirror + "/contract", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"PATCH " + apply, proxy + "/contract?fieldManager=one", `{"apiVersion":"config.openshift.io/v1","kind":"Proxy","metadata":{"name":"contract"},"spec":{"noProxy":"a"},"status":{"noProxy":"ignored"}}`, ""},
		{"PATCH " + apply, proxy + "/contract/status?fieldManager=two", `{"apiVersion":"config.openshift.io/v1","kind":"Proxy","metadata":{"name":"contract","labels":{"ignored":"x"}},"status":{"noProxy":"b"}}`, ""},
		{"GET", "/apis/config.openshift.io/v1/nones", "", ""},
		{"PATCH " + apply, states + "/windows-nodes?fieldManager=one", `{"apiVersion":"windowsmachineconfig.openshift.io/v1alpha1","kind":"WindowsNodesStatus","metadata":{"name":"windows-nodes"}}`, ""},
		{"PATCH " + apply, states + "/windows-nodes/status?fieldManager=one", `{"apiVersion":"windowsmachineconfig.openshift.io/v1alpha1","kind":"WindowsNodesStatus","metadata":{"name":"windows-nodes"},"status":{"conditions":[{"type":"One","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, ""},
		{"PATCH " + apply, states + "/windows-nodes/status?fieldManager=two", `{"apiVersion":"windowsmachineconfig.openshift.io/v1alpha1","kind":"WindowsNodesStatus","metadata":{"name":"windows-nodes"},"status":{"conditions":[{"type":"Two","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, ""},
		{"GET", maps, "", account},
		{"POST", roles + "/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"],"resourceNames":["applied"]}]}`, ""},
		{"POST", roles + "/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reader"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"ServiceAccount","name":"reader","namespace":"default"}]}`, ""},
		{"GET", maps + "/applied", "", account},
		{"GET", maps + "/kept", "", account},
		{"DELETE", maps + "/applied", "", account},
		{"PATCH " + merge, node + "/contract-a", `{"spec":{"unschedulable":null}}`, account},
		{"POST", lease, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"contract"},"spec":{"holderIdentity":"a","leaseDurationSeconds":40}}`, ""},
		{"PATCH " + merge, lease + "/contract", `{"spec":{"holderIdentity":"b"}}`, ""},
		{"DELETE", lease + "/contract", "", ""},
		{"DELETE", lease + "/contract", "", ""},
		{"POST", "/api/v1/namespaces/default/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"contract-a.1","generateName":"contract-a."},"involvedObject":{"kind":"Node","name":"contract-a"},"reason":"Contract","message":"m","type":"Normal","source":{"component":"agent"}}`, kubelet},
		{"DELETE", node + "/contract-a", "", ""},
	}
}

// callsOfNodes are what kubelets, their approvers and those who sign ask for. Request is a signed request for a certificate.
func callsOfNodes(t *testing.T) []call {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testenv.Must(t, err)
	request, err := certutil.MakeCSR(key, &pkix.Name{CommonName: kubelet, Organization: []string{user.NodesGroup}}, nil, nil)
	testenv.Must(t, err)
	masters, err := certutil.MakeCSR(key, &pkix.Name{CommonName: kubelet, Organization: []string{user.SystemPrivilegedGroup}}, nil, nil)
	testenv.Must(t, err)
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: kubelet}, key)
	testenv.Must(t, err)
	signed, err := certutil.EncodeCertificates(cert)
	testenv.Must(t, err)
	text, certificate := base64.StdEncoding.EncodeToString(request), base64.StdEncoding.EncodeToString(signed)
	const usages = `"usages":["digital signature","client auth"],"signerName":"kubernetes.io/kube-apiserver-client-kubelet"`
	named := func(name, spec, status string) string {
		return `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"` + name + `"},"spec":{` + spec + `},"status":{` + status + `}}`
	}
	spec := `"request":"` + text + `",` + usages
	condition := func(kind, status string) string {
		return `{"type":"` + kind + `","status":"` + status + `","reason":"Contract","message":"m"}`
	}
	conditions := func(list ...string) string { return `"conditions":[` + strings.Join(list, ",") + `]` }
	approved := conditions(condition("Approved", "True"))
	has := approved + `,"certificate":"` + certificate + `"`
	labelled := func(name, label string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `","labels":{"kubernetes.io/os":"windows","` + label + `":"x"}},"spec":{"taints":[{"key":"os","value":"Windows","effect":"NoSchedule"}]}}`
	}
	leased := func(name string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"` + name + `","namespace":"kube-node-lease"},"spec":{"holderIdentity":"` + name + `","leaseDurationSeconds":40}}`
	}
	pod := func(name, on string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"nodeName":"` + on + `","terminationGracePeriodSeconds":30,"containers":[{"name":"c","image":"i"}]}}`
	}
	return []call{
		{"POST", node, labelled("contract-a", "node-role.kubernetes.io/worker"), kubelet},
		{"POST", node, labelled("contract-a", "node-restriction.kubernetes.io/x"), kubelet},
		{"POST", node, labelled("contract-z", "node.openshift.io/os_id"), kubelet},
		{"POST", node, labelled("contract-a", "node.openshift.io/os_id"), kubelet},
		{"GET", node + "/contract-a", "", kubelet},
		{"GET", node + "/contract-b", "", kubelet},
		{"GET", node, "", kubelet},
		{"GET", node + "?fieldSelector=metadata.name%3Dcontract-a", "", kubelet},
		{"PATCH " + merge, node + "/contract-a", `{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}}`, kubelet},
		{"PATCH " + merge, node + "/contract-a", `{"metadata":{"labels":{"other":"y"}}}`, kubelet},
		{"PATCH " + merge, node + "/contract-a", `{"spec":{"taints":null}}`, kubelet},
		{"PATCH " + merge, node + "/contract-b", `{"metadata":{"annotations":{"other":"y"}}}`, kubelet},
		{"DELETE", node + "/contract-a", "", kubelet},
		{"GET", node + "/contract-a", "", unknown},
		{"GET", secret + "/strings", "", kubelet},
		{"POST", pods, pod("own", "contract-a"), ""},
		{"POST", pods, pod("other", "contract-b"), ""},
		{"POST", pods, pod("mirror", "contract-a"), kubelet},
		{"GET", "/api/v1/pods", "", kubelet},
		{"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dcontract-a", "", kubelet},
		{"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dcontract-b", "", kubelet},
		{"PATCH " + strategic, pods + "/own/status", `{"status":{"phase":"Running"}}`, kubelet},
		{"PATCH " + strategic, pods + "/other/status", `{"status":{"phase":"Running"}}`, kubelet},
		{"DELETE", pods + "/other?gracePeriodSeconds=0", "", kubelet},
		{"DELETE", pods + "/own?gracePeriodSeconds=0", "", kubelet},
		{"POST", beats, leased("contract-a"), kubelet},
		{"POST", beats, leased("contract-b"), kubelet},
		{"GET", beats + "/contract-a", "", kubelet},
		{"GET", beats + "/contract-b", "", kubelet},
		{"GET", beats, "", kubelet},
		{"PUT", beats + "/contract-a", leased("contract-a"), kubelet},
		{"PATCH " + merge, beats + "/contract-a", `{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}`, kubelet},
		{"PATCH " + merge, beats + "/contract-b", `{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}`, kubelet},
		{"POST", lease, leased("contract-a"), kubelet},
		{"POST", csr, named("Node-csr_A", spec, approved), kubelet},
		{"POST", csr, named("other-user", spec+`,"username":"someone"`, ""), ""},
		{"POST", csr, named("no-usages", `"request":"`+text+`","signerName":"kubernetes.io/kubelet-serving"`, ""), kubelet},
		{"POST", csr, named("no-request", `"request":"`+certificate+`",`+usages, ""), kubelet},
		{"POST", csr, named("masters", `"request":"`+base64.StdEncoding.EncodeToString(masters)+`","usages":["client auth"],"signerName":"kubernetes.io/kube-apiserver-client"`, ""), kubelet},
		{"POST", csr, named("too-short", spec+`,"expirationSeconds":599`, ""), kubelet},
		{"POST", csr, named("no", spec, ""), unknown},
		{"GET", csr + "?fieldSelector=metadata.name%3DNode-csr_A", "", kubelet},
		{"GET", csr + "?fieldSelector=spec.signerName%3Dkubernetes.io/kubelet-serving", "", kubelet},
		{"PUT", csr + "/Node-csr_A/approval", named("Node-csr_A", spec, approved), kubelet},
		{"PUT", csr + "/Node-csr_A/status", named("Node-csr_A", spec, approved), ""},
		{"PUT", csr + "/Node-csr_A/approval", named("Node-csr_A", spec, approved), account},
		{"POST", cluster + "/clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"contract-approver"},"rules":[{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests/approval"],"verbs":["update"]}]}`, ""},
		{"POST", cluster + "/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"contract-approver"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"contract-approver"},"subjects":[{"kind":"ServiceAccount","name":"reader","namespace":"default"}]}`, ""},
		{"PUT", csr + "/Node-csr_A/approval", named("Node-csr_A", spec, approved), account},
		{"PUT", csr + "/Node-csr_A/approval", named("Node-csr_A", `"request":"`+text+`",`+strings.Replace(usages, "client auth", "server auth", 1), has), ""},
		{"PUT", csr + "/Node-csr_A/approval", named("Node-csr_A", spec, conditions()), ""},
		{"PUT", csr + "/Node-csr_A/status", named("Node-csr_A", spec, conditions()), ""},
		{"PUT", csr + "/Node-csr_A/status", named("Node-csr_A", spec, conditions(condition("Approved", "True"), condition("Denied", "True"))), ""},
		{"PUT", csr + "/Node-csr_A/status", named("Node-csr_A", spec, has), ""},
		{"PUT", csr + "/Node-csr_A/status", named("Node-csr_A", spec, approved), ""},
		{"PUT", csr + "/Node-csr_A", named("Node-csr_A", strings.Replace(spec, "client auth", "server auth", 1), ""), ""},
		{"GET", csr + "/Node-csr_A", "", kubelet},
		{"DELETE", csr + "/Node-csr_A", "", ""},
		{"POST", csr, named("fails", spec, ""), kubelet},
		{"PUT", csr + "/fails/status", named("fails", spec, conditions(condition("Failed", "True"))), ""},
		{"POST", "/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bootstrapper"}}`, ""},
		{"POST", tokenOf, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`, ""},
		{"POST", tokenOf, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`, kubelet},
		{"POST", "/api/v1/namespaces/default/serviceaccounts/none/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, ""},
	}
}

// TestTheServerAnswersAsARealOne makes the same requests of both, and compares the answers and what a watch of Nodes
// sees. What differs is listed in differs.
func TestTheServerAnswersAsARealOne(t *testing.T) {
	config := server.Config(t)
	root := filepath.Join("..", "..", "..", "..")
	server.Load(t, filepath.Join(root, "deploy", "crd"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	definitions, err := manifests.Read(filepath.Join(root, "deploy", "crd"))
	testenv.Must(t, err)
	kinds, err := WithDefinition(Kinds(), definitions[0].Unstructured)
	testenv.Must(t, err)
	memory, err := New(ctx, kinds)
	testenv.Must(t, err)
	admin := user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	// The namespaces that an API server makes.
	if got := answerOf(t, memory.Transport(&admin), "http://world", call{"POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`, ""}); !strings.HasPrefix(got, "201") {
		t.Fatal(got)
	}
	of := func(as string) (who user.Info, to *rest.Config) {
		to = rest.CopyConfig(config)
		switch as {
		case "":
			return &admin, to
		case unknown:
			return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, rest.AnonymousClientConfig(config)
		case kubelet:
			return &user.DefaultInfo{Name: kubelet, Groups: []string{user.NodesGroup, user.AllAuthenticated}}, server.Node(t, "contract-a")
		}
		to.Impersonate = rest.ImpersonationConfig{UserName: as, Groups: []string{user.AllAuthenticated}}
		return serviceaccount.UserInfo("default", "reader", ""), to
	}
	realRT, err := rest.TransportFor(config)
	testenv.Must(t, err)
	seen := [2]<-chan string{watchNodes(ctx, t, memory.Transport(&admin), "http://world"), watchNodes(ctx, t, realRT, urlOf(t, config))}
	for i, c := range slices.Concat(calls(), callsOfNodes(t)) {
		who, to := of(c.as)
		rt, err := rest.TransportFor(to)
		testenv.Must(t, err)
		want := answerOf(t, rt, urlOf(t, to), c)
		if diff := cmp.Diff(want, answerOf(t, memory.Transport(who), "http://world", c)); diff != "" {
			t.Errorf("%d %s %s %q (-real +memory):\n%s", i, c.method, c.path, c.as, diff)
		}
		switch {
		case strings.HasSuffix(c.path, "/rolebindings"):
			awaitRights(t, realRT, urlOf(t, config), `"verb":"get","resource":"configmaps","namespace":"default","name":"applied"`)
		case strings.HasSuffix(c.path, "/clusterrolebindings"):
			awaitRights(t, realRT, urlOf(t, config), `"verb":"update","group":"certificates.k8s.io","resource":"certificatesigningrequests","subresource":"approval"`)
		}
	}
	for ours := ""; !strings.HasPrefix(ours, "DELETED"); {
		ours = next(t, seen[0])
		if want := next(t, seen[1]); ours != want {
			t.Fatalf("the watch has seen %s, that of the real one %s", ours, want)
		}
	}
}

// awaitRights waits until the real API server knows the rights of the account: its authorizer reads them from a watch.
func awaitRights(t *testing.T, rt http.RoundTripper, host, attributes string) {
	t.Helper()
	review := call{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"` + account +
		`","resourceAttributes":{` + attributes + `}}}`, ""}
	testenv.Must(t, testenv.Eventually(t.Context(), "the rights of "+account, func() bool {
		return strings.Contains(answerOf(t, rt, host, review), `"allowed": true`)
	}))
}

func urlOf(t *testing.T, c *rest.Config) string {
	t.Helper()
	u, _, err := rest.DefaultServerUrlFor(c)
	testenv.Must(t, err)
	return strings.TrimSuffix(u.String(), "/")
}

func next(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case text := <-c:
		return text
	case <-time.After(2 * time.Minute): // it hangs
		t.Fatal("a watch has seen nothing")
		return ""
	}
}

// watchNodes shows what a watch of Windows Nodes sees: type, name and version of the spec.
func watchNodes(ctx context.Context, t *testing.T, rt http.RoundTripper, host string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host+node+"?watch=true&labelSelector=kubernetes.io/os%3Dwindows", nil)
	testenv.Must(t, err)
	answer, err := rt.RoundTrip(r) //nolint:bodyclose // the goroutine below does
	testenv.Must(t, err)
	out := make(chan string, 100)
	go func() {
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e struct {
				Type   string
				Object struct {
					Metadata struct {
						Name        string
						Annotations map[string]string
					}
					Spec struct{ Unschedulable bool }
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e.Type = err.Error()
			}
			out <- fmt.Sprint(e.Type, " ", e.Object.Metadata.Name, e.Object.Metadata.Annotations["b"], e.Object.Spec.Unschedulable)
		}
	}()
	return out
}

// answerOf makes a request, and returns its code and what it says that must be the same.
func answerOf(t *testing.T, rt http.RoundTripper, host string, c call) string {
	t.Helper()
	method, kind, _ := strings.Cut(c.method, " ")
	if kind == "" {
		kind = "application/json"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, host+c.path, strings.NewReader(c.body))
	testenv.Must(t, err)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Accept", "application/json")
	answer, err := rt.RoundTrip(r)
	testenv.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var body any
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Sprint(answer.StatusCode) // what is no object is in the words of a library
	}
	out, err := json.MarshalIndent(plain(body, ""), "", " ")
	testenv.Must(t, err)
	return fmt.Sprintf("%d %s", answer.StatusCode, bytes.TrimSpace(out))
}

// differs are the fields in which the server in memory is not like a real one: identities and times, and defaults that
// only the types inside of kube-apiserver have.
var differs = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.managedFields", "metadata.namespace",
	"metadata.remainingItemCount", "metadata.selfLink", "details.uid", "message", "details.causes",
	"spec.extra", "status.token", "status.expirationTimestamp", "spec.audiences", "status.conditions.lastUpdateTime", "spec.taints", "details.retryAfterSeconds", "spec.podCIDR", "spec.podCIDRs", "spec.unhealthyPodEvictionPolicy",
	"spec.dnsPolicy", "spec.enableServiceLinks", "spec.preemptionPolicy", "spec.priority", "spec.restartPolicy", "spec.schedulerName", "spec.securityContext",
	"spec.serviceAccount", "spec.serviceAccountName", "spec.tolerations", "spec.volumes", "spec.containers", "status.qosClass",
	"status.capacity", "status.allocatable", "status.daemonEndpoints", "status.nodeInfo", "status.phase", "status.observedGeneration", "metadata.labels.kubernetes.io/metadata.name",
}

// sentOn is the day of the times of conditions in calls. Others are of the server: the two may be asked in different seconds.
const sentOn = "2026-01-01T"

// plain is an answer without what differs.
func plain(x any, path string) any {
	switch x := x.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			at := strings.TrimPrefix(path+"."+k, ".")
			at = strings.TrimPrefix(at, "items.")
			if slices.Contains(differs, at) || at == "status.conditions.lastTransitionTime" && !strings.HasPrefix(fmt.Sprint(v), sentOn) {
				continue
			}
			if v = plain(v, at); v != nil {
				out[k] = v
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, v := range x {
			out = append(out, plain(v, path))
		}
		return out
	}
	return x
}
