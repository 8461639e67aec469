package jointest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/keys/signing"
	"wmco/controller/prerequisites"
	"wmco/render"
)

// checkSecrets searches everything that operators wrote for secrets: their log, and the objects that they write.
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
	if w.memory == nil { // the metrics of a process are of all stories that it plays at the same time
		families, err := metrics.Registry.Gather()
		if err != nil {
			w.t.Error(err)
		}
		said["the metrics"] = fmt.Sprint(families)
	}
	for what, secret := range w.secrets() {
		for where, text := range said {
			if strings.Contains(text, secret) {
				w.t.Errorf("%s has %s", where, what)
			}
		}
	}
}

// secrets are parts of secrets, by what they are.
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
