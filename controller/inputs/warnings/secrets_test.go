package warnings

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/controller/gather"
	"wmco/render"
)

const (
	password = "hunter7"
	guess    = "hunter6"
)

// object is one of the cluster, with these fields besides its name.
func object(kind schema.GroupVersionKind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range fields {
		u.Object[k] = v
	}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func openshift(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group + ".openshift.io", Version: version, Kind: kind}
}

func core(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// proxyURL is that of a proxy that asks for a password; none without one.
func proxyURL(password string) string { return "http://user:" + password + "@proxy.example.com:3128" }

// auths is the text of a pull secret with this password for two registries.
func auths(password string) string {
	text := encoded("user:" + password)
	return fmt.Sprintf(`{"auths":{"mirror.example.com":{"auth":%q},"docker.io":{"auth":%q}}}`, text, text)
}

// holders are the objects that hold credentials, with a password.
func holders(password string) []*unstructured.Unstructured {
	secret := func(namespace, name, key, value string) *unstructured.Unstructured {
		return object(core("Secret"), namespace, name, map[string]any{"data": map[string]any{key: encoded(value)}})
	}
	proxies := map[string]any{"httpProxy": proxyURL(password), "httpsProxy": proxyURL(password)}
	return []*unstructured.Unstructured{
		object(openshift("config", "v1", "Proxy"), "", "cluster", map[string]any{"spec": map[string]any{}, "status": proxies}),
		object(openshift("config", "v1", "Proxy"), "", "cluster", map[string]any{"spec": proxies, "status": map[string]any{}}),
		object(openshift("config", "v1", "Proxy"), "", "cluster", map[string]any{"spec": proxies, "status": proxies}),
		secret(render.PullSecretNamespace, render.PullSecretName, ".dockerconfigjson", auths(password)),
		secret("openshift-machine-config-operator", "node-bootstrapper-token", "token", password),
		secret(gather.OperatorNamespace, "windows-machine-config-operator-tls", "tls.key", password),
		object(openshift("machineconfiguration", "v1", "ControllerConfig"), "", "machine-config-controller", map[string]any{"spec": map[string]any{"internalRegistryPullSecret": encoded(auths(password))}}),
		object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, gather.OperatorNamespace, "windows-machine-config-operator", map[string]any{
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "manager", "env": []any{map[string]any{"name": "HTTP_PROXY", "value": proxyURL(password)}},
			}}}}},
		}),
	}
}

// configured are objects without credentials, whose settings one who asks may guess as well.
func configured(guess string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object(openshift("config", "v1", "ImageDigestMirrorSet"), "", "base", map[string]any{"spec": map[string]any{"imageDigestMirrors": []any{
			map[string]any{"source": "docker.io", "mirrors": []any{"mirror.example.com/" + guess}},
		}}}),
		object(core("ConfigMap"), gather.OperatorNamespace, "windows-machine-config", map[string]any{"data": map[string]any{"config.yaml": "kubelet: {maxPods: 1" + guess[len(guess)-1:] + "0}\n"}}),
	}
}

// withPassword gives the credentials of the cluster a password.
func withPassword(password string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		for _, h := range slices.Delete(holders(password), 1, 3) { // a Proxy as the network operator has written it
			if h.GroupVersionKind() != u.GroupVersionKind() || h.GetName() != u.GetName() {
				continue
			}
			for part, value := range h.Object {
				fields, ok := value.(map[string]any)
				if !ok || part == "metadata" {
					continue
				}
				for k, v := range fields {
					_ = unstructured.SetNestedField(u.Object, v, part, k)
				}
			}
		}
	}
}

// asks are the requests about an object that whoever reaches the port may make up.
func asks(t *testing.T, u *unstructured.Unstructured) map[string]admission.Request {
	t.Helper()
	kind := u.GroupVersionKind()
	all := map[string]admission.Request{}
	for name, r := range map[string]admissionv1.AdmissionRequest{
		"created":                           {Operation: admissionv1.Create},
		"updated, without what it was":      {Operation: admissionv1.Update},
		"updated, from the same":            {Operation: admissionv1.Update},
		"deleted":                           {Operation: admissionv1.Delete},
		"deleted, without what it was":      {Operation: admissionv1.Delete},
		"an operation that there is not":    {Operation: "X"},
		"an operation that has not a name ": {},
	} {
		r.Kind, r.Namespace, r.Name = metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, u.GetNamespace(), u.GetName()
		if r.Operation != admissionv1.Delete {
			r.Object.Raw = marshal(t, u)
		}
		if name == "updated, from the same" || name == "deleted" {
			r.OldObject.Raw = marshal(t, labelled(u))
		}
		all[name] = admission.Request{AdmissionRequest: r}
	}
	return all
}

// answer is the answer to a request.
func answer(t *testing.T, w *Warner, r admission.Request) []string {
	t.Helper()
	got := w.Handle(t.Context(), r)
	if !got.Allowed {
		t.Errorf("%s %s is refused", r.Kind.Kind, r.Name)
	}
	return got.Warnings
}

// TestNothingCanBeGuessed: whoever asks about an object that is made up hears the same if it is the one of the cluster.
func TestNothingCanBeGuessed(t *testing.T) {
	state := map[string]*unstructured.Unstructured{}
	for _, u := range configured(password) {
		state[u.GetName()] = u
	}
	c := cluster(t, 1, withPassword(password))
	for _, u := range state {
		c = with(c, u)
	}
	w := warner(c)
	right, wrong := slices.Concat(holders(password), configured(password)), slices.Concat(holders(guess), configured(guess))
	for i, u := range right {
		second := asks(t, wrong[i])
		for name, r := range asks(t, u) {
			if diff := cmp.Diff(answer(t, w, second[name]), answer(t, w, r)); diff != "" {
				t.Errorf("%s %s, %s (-a wrong guess +the right one):\n%s", u.GetKind(), u.GetName(), name, diff)
			}
		}
	}
}

// TestAnswersDoNotDependOnCredentials: clusters that differ in them alone answer every question in the same way.
func TestAnswersDoNotDependOnCredentials(t *testing.T) {
	clusters := map[string]func(*unstructured.Unstructured){
		"a password":       withPassword(password),
		"another password": withPassword(guess),
		"one that makes the address of the proxy invalid": withPassword("a%zz"),
		"no credentials of registries": func(u *unstructured.Unstructured) {
			withPassword(password)(u)
			if u.GetName() == render.PullSecretName {
				_ = unstructured.SetNestedField(u.Object, encoded("{}"), "data", ".dockerconfigjson")
			}
		},
		"credentials that are no base64": func(u *unstructured.Unstructured) {
			withPassword(password)(u)
			if u.GetName() == render.PullSecretName {
				_ = unstructured.SetNestedField(u.Object, encoded(`{"auths":{"mirror.example.com":{"auth":"%"}}}`), "data", ".dockerconfigjson")
			}
		},
	}
	mirrors := openshift("config", "v1", "ImageDigestMirrorSet")
	var questions []*unstructured.Unstructured
	for _, places := range [][]any{{"mirror.example.com"}, {"mirror.example.com/a", "mirror.example.com/b"}, {"other.example.com"}, {"user:" + password + "@mirror.example.com"}} {
		questions = append(questions, object(mirrors, "", "new", map[string]any{"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": "docker.io", "mirrors": places}}}}))
	}
	questions = append(questions, slices.Concat(holders(password), configured(password))...)
	questions = append(questions, object(openshift("config", "v1", "Image"), "", "cluster", map[string]any{"spec": map[string]any{"registrySources": map[string]any{"blockedRegistries": []any{"mirror.example.com"}}}}))
	first := map[string][]string{}
	count := 0
	for of, change := range clusters {
		w := warner(with(cluster(t, 1, change), configured("base")[0]))
		for i, u := range questions {
			for name, r := range asks(t, u) {
				question := fmt.Sprintf("%d: %s %s, %s", i, u.GetKind(), u.GetName(), name)
				got := answer(t, w, r)
				count += len(got)
				before, ok := first[question]
				if !ok {
					first[question] = got
					continue
				}
				if diff := cmp.Diff(before, got); diff != "" {
					t.Errorf("%s, in a cluster with %s (-another one +it):\n%s", question, of, diff)
				}
			}
		}
	}
	if count < len(clusters) {
		t.Errorf("only %d lines: nothing was compared", count)
	}
}

// with is a cluster with one more object.
func with(c client.Client, u *unstructured.Unstructured) client.Client {
	return &proposed{Client: c, change: &change{kind: u.GroupVersionKind(), key: client.ObjectKeyFromObject(u), object: u}}
}
