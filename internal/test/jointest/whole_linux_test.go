package jointest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/keys/signing"
	"wmco/controller/prerequisites"
	"wmco/deploy/admission"
	"wmco/internal/test/shards"
	"wmco/internal/test/testenv/controlplane"
	"wmco/internal/test/testenv/manifests"
	"wmco/render"
)

// checkSecrets searches everything that operators said for what nobody may read: their log, and the objects that they write.
func (w *world) checkSecrets() {
	said := map[string]string{"the log": w.log.String()}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "events.k8s.io", Version: "v1", Kind: "EventList"}, {Version: "v1", Kind: "NodeList"}, {Version: "v1", Kind: "ConfigMapList"},
		{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequestList"}, {Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineList"},
		{Group: "windowsmachineconfig.openshift.io", Version: "v1alpha1", Kind: "WindowsNodesStatusList"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.List(context.Background(), list); err != nil {
			w.t.Error(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			w.t.Error(err)
		}
		said[kind.Kind] = string(text)
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		w.t.Error(err)
	}
	said["the metrics"] = fmt.Sprint(families)
	for what, secret := range w.secrets() {
		for where, text := range said {
			if strings.Contains(text, secret) {
				w.t.Errorf("%s has %s", where, what)
			}
		}
	}
}

// secrets are parts of what nobody may read, by what they are.
func (w *world) secrets() map[string]string {
	all := map[string]string{}
	get := func(namespace, name string) map[string][]byte {
		var s corev1.Secret
		if err := w.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &s); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		return s.Data
	}
	for line := range strings.Lines(string(get(gather.OperatorNamespace, keys.SecretName)[keys.SecretKey])) {
		if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-----") {
			all["a line of the private key"] = line // the last one, which is not the same for all keys
		}
	}
	for _, key := range get(gather.OperatorNamespace, signing.SecretName) {
		all["a key that signs"] = strings.Split(string(key), "\n")[1]
	}
	if token := string(get("openshift-machine-config-operator", "node-bootstrapper-token")["token"]); token != "" {
		all["the bootstrap token"] = token
	}
	if key := get(gather.OperatorNamespace, "windows-digest-key")["key"]; len(key) > 0 {
		all["the key of digests"] = base64.StdEncoding.EncodeToString(key)
		all["the key of digests, in hexadecimal"] = fmt.Sprintf("%x", key)
	}
	var pull struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(get("openshift-config", "pull-secret")[corev1.DockerConfigJsonKey], &pull); err != nil {
		w.t.Error(err)
	}
	for registry, a := range pull.Auths {
		all["the login of "+registry] = a.Auth
		if plain, err := base64.StdEncoding.DecodeString(a.Auth); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			all["the password of "+registry] = password
		}
	}
	for what, secret := range all {
		if len(secret) < 6 {
			w.t.Errorf("%s is too short to be searched for", what)
		}
	}
	return all
}

// permission is one permission of the operator: a rule has several.
type permission struct {
	namespace, group, resource, verb string
	// names are those that it is limited to.
	names []string
	// watched reports whether the rule has the verb watch too.
	watched bool
}

func (p permission) String() string {
	text := p.verb + " " + p.resource
	if p.group != "" {
		text += "." + p.group
	}
	if len(p.names) > 0 {
		text += " " + strings.Join(p.names, ", ")
	}
	return text
}

// permits reports whether a request needs the permission, or could be made with it.
func (p permission) permits(r controlplane.Request) bool {
	applied := r.Verb == "patch" && r.Status == http.StatusCreated // it needs the permission to create too
	return (p.verb == r.Verb || applied && p.verb == "create") && p.group == r.Group && p.resource == r.Resource && (p.namespace == "" || p.namespace == r.Namespace) &&
		(len(p.names) == 0 || r.Name == "" && r.Verb != "create" || slices.Contains(p.names, r.Name))
}

// shipped are the permissions of the operator.
func shipped(t *testing.T) []permission {
	t.Helper()
	list, err := manifests.Read(filepath.Join("..", "..", "..", "deploy", "rbac"))
	must(t, err)
	var all []permission
	for _, m := range list {
		if !strings.HasSuffix(m.GetKind(), "Role") || m.GetName() != "windows-machine-config-operator" {
			continue
		}
		var role rbacv1.Role // a ClusterRole has the same fields
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &role))
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, permission{role.Namespace, group, resource, verb, rule.ResourceNames, slices.Contains(rule.Verbs, "watch")})
					}
				}
			}
		}
	}
	return all
}

// TestTheClusterGetsWhatTheOperatorAdds: user data for Machines, the ConfigMap that the CAs of a proxy are put into, and the policy for
// cloud-node-managers.
func TestTheClusterGetsWhatTheOperatorAdds(t *testing.T) {
	w := newWorld(t)
	w.patchCluster("Infrastructure", `{"status":{"platformStatus":{"type":"Azure"}}}`, `{"status":{"platformStatus":{"type":"None"}}}`)
	w.patchCluster("Proxy", `{"status":{"httpsProxy":"http://proxy.example.com:3128"}}`, `{"status":{"httpsProxy":null}}`)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "windows-user-data"}}
	must(t, client.IgnoreNotFound(w.Delete(t.Context(), secret.DeepCopy())))
	stop := w.operate()
	eventually(t, "the user data", func() bool { return w.Get(t.Context(), client.ObjectKeyFromObject(secret), secret) == nil })
	eventually(t, "the ConfigMap of the CAs", func() bool {
		cm := &corev1.ConfigMap{}
		err := w.Get(t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: render.TrustedCAConfigMap}, cm)
		return err == nil && cm.Labels[render.TrustedCALabel] == "true"
	})
	eventually(t, "the policy", func() bool { return w.condition(prerequisites.CloudIdentitiesBound).Status == metav1.ConditionTrue })
	eventually(t, "that the namespace is monitored", func() bool { return w.condition(prerequisites.NamespaceMonitored).Status == metav1.ConditionTrue })
	stop()
	want := secret.Data
	secret.Data = map[string][]byte{"userData": []byte("another")}
	must(t, w.Update(t.Context(), secret))
	w.operate()
	eventually(t, "the user data of the key", func() bool {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
		return reflect.DeepEqual(secret.Data, want)
	})
}

// patchCluster changes the status of an object of config.openshift.io until the end of the test.
func (w *world) patchCluster(kind, change, back string) {
	w.t.Helper()
	patch := func(ctx context.Context, text string) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(configv1.GroupVersion.WithKind(kind))
		u.SetName("cluster")
		return w.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	must(w.t, patch(w.t.Context(), change))
	w.t.Cleanup(func() { must(w.t, patch(context.Background(), back)) })
}

// TestThePermissionsAreThoseThatAreUsed compares what operators have asked for in all tests of this package, by the audit log, with what
// they may. It runs after all others: in a process of its own, or, if tests are chosen, as the last one of the last file.
func TestThePermissionsAreThoseThatAreUsed(t *testing.T) {
	requests := readRequests(t)
	all := shipped(t)
	missing := map[string]bool{}
	for _, r := range requests {
		// One that is permitted was refused because a test took the permission away, or by an API server that has just started.
		permitted := slices.ContainsFunc(all, func(p permission) bool { return p.permits(r) })
		if r.Status == http.StatusForbidden && !permitted && !isOptional(r) && !missing[r.String()] {
			missing[r.String()] = true
			t.Errorf("the operator may not: %s", r)
		}
	}
	if shards.ResultFolder() == "" {
		t.Skip("what is used is known only when all tests have run")
	}
	for _, p := range all {
		used := slices.ContainsFunc(requests, func(r controlplane.Request) bool { return r.Status < 400 && p.permits(r) })
		switch why := elsewhere(p); {
		case !used && why == "":
			t.Errorf("nothing needs the permission to %s", p)
		case used && strings.HasPrefix(why, never):
			t.Errorf("the permission to %s was used: it is not true that it %s", p, why)
		}
	}
}

// requestsPattern are the files in which processes keep what operators have asked for.
const requestsPattern = "requests-*.json"

// keepRequests keeps what operators have asked for, for the test of the permissions.
func keepRequests(plane *controlplane.ControlPlane) error {
	if shards.ResultFolder() == "" {
		return nil
	}
	requests, err := operatorRequests(plane)
	if err != nil {
		return err
	}
	data, err := json.Marshal(requests)
	if err != nil {
		return err
	}
	name := strings.Replace(requestsPattern, "*", strconv.Itoa(os.Getpid()), 1)
	return os.WriteFile(filepath.Join(shards.ResultFolder(), name), data, 0o600)
}

func operatorRequests(plane *controlplane.ControlPlane) ([]controlplane.Request, error) {
	requests, err := plane.Requests()
	return slices.DeleteFunc(requests, func(r controlplane.Request) bool { return r.User != operatorUser || r.Resource == "" }), err
}

// readRequests returns what operators have asked for in all tests that have run.
func readRequests(t *testing.T) []controlplane.Request {
	t.Helper()
	if shards.ResultFolder() == "" {
		requests, err := operatorRequests(server.ControlPlane(t))
		must(t, err)
		return requests
	}
	files, err := filepath.Glob(filepath.Join(shards.ResultFolder(), requestsPattern))
	must(t, err)
	if len(files) == 0 {
		t.Skip("no other test had a control plane")
	}
	var all []controlplane.Request
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(t, err)
		var requests []controlplane.Request
		must(t, json.Unmarshal(data, &requests))
		all = append(all, requests...)
	}
	return all
}

// isOptional reports whether the operator asks for what only some installations permit, and says in a condition what it lacks: user data for
// the Cluster API and its Machines (deploy/cluster-api), and the policy about its own Secrets, which manifests bring and the operator applies under OLM.
func isOptional(r controlplane.Request) bool {
	return r.Namespace == "openshift-cluster-api" && (r.Resource == "secrets" && r.Name == "windows-user-data" || r.Resource == "machines") ||
		strings.HasPrefix(r.Resource, "validatingadmissionpolic") && r.Name == admission.Operator
}

// never begins the reasons that an audit log cannot show otherwise.
const never = "is never a request: "

// elsewhere says where a permission is used that no test of this package may need.
func elsewhere(p permission) string {
	switch {
	case p.resource == "signers":
		return never + "the API server checks it when a request is approved"
	case p.verb == "list" && p.watched:
		return "is for API servers that do not stream lists"
	case p.verb == "get" && p.resource == "nodes":
		return "is for a Node that has changed while a bundle was published on it (controller/layers)"
	case p.resource == "tokenreviews" || p.resource == "subjectaccessreviews":
		return "is for those who read metrics, which operators of these tests do not serve (tests of controller)"
	case slices.Contains([]string{"clusterimagepolicies", "imagepolicies", "criocredentialproviderconfigs", "kubeletconfigs", "containerruntimeconfigs", "machineconfigurations"}, p.resource):
		return "is for kinds that clusters of these tests do not serve (controller/prerequisites)"
	case p.resource == "machinehealthchecks":
		return "is for a rollout that boots a Machine (controller/rollout/steps)"
	case p.verb == "delete" && p.resource == "rolebindings":
		return "is for a binding to another role, which cannot be changed (controller/layers)"
	case p.verb == "patch" && p.resource == "events":
		return "is for events that repeat for minutes"
	}
	return ""
}
