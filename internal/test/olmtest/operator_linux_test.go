package olmtest

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/deploy/olm"
)

// operator is a running operator.
type operator struct {
	*world
	logs string
	// condition is the name of its OperatorCondition.
	condition string
	stop      func()
}

// operate runs the operator as in the Deployment: its arguments, its environment, and a token of its ServiceAccount. Files of the image are
// in folders of the tests.
func (w *world) operate() *operator {
	w.t.Helper()
	deployment := w.get("Deployment", namespace, olm.Package)
	c := containerOf(deployment)
	env := w.environment(deployment, c)
	account, _, _ := unstructured.NestedString(deployment.Object, "spec", "template", "spec", "serviceAccountName")
	kubeconfig, err := w.tokenFile(w.t.Context(), namespace, account)
	must(w.t, err)
	payload, err := filepath.Abs(filepath.Join("..", "..", "..", "golden", "payload"))
	must(w.t, err)
	program := filepath.Join(w.folder, "wmco-node.exe")
	must(w.t, os.WriteFile(program, []byte("MZ"), 0o600)) // no host is reached
	var words []string
	for _, part := range []string{"command", "args"} {
		list, _, _ := unstructured.NestedStringSlice(c, part)
		words = append(words, list...)
	}
	replaced := strings.NewReplacer("/usr/bin/wmco", w.wmco, "$(POD_NAMESPACE)", env["POD_NAMESPACE"], "=/payload", "="+payload, "=/etc/", "="+w.t.TempDir()+"/")
	for i := range words {
		words[i] = replaced.Replace(words[i])
	}
	run := exec.Command(words[0], append(words[1:], "--node-program="+program)...)
	run.Env = []string{"PATH=/usr/bin", "HOME=" + w.folder, "KUBECONFIG=" + kubeconfig}
	for name, value := range env {
		run.Env = append(run.Env, name+"="+value)
	}
	o := &operator{world: w, condition: env["OPERATOR_CONDITION_NAME"], logs: filepath.Join(w.folder, "operator-"+time.Now().Format("150405.000")+".log")}
	o.stop = sync.OnceFunc(begin(w.t, o.logs, run))
	w.t.Cleanup(o.stop)
	w.await("the operator is ready", o.isReady)
	return o
}

// environment returns what the kubelet would make of the Deployment's.
func (w *world) environment(deployment *unstructured.Unstructured, container object) map[string]string {
	w.t.Helper()
	var pods corev1.PodList
	must(w.t, w.List(w.t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"name": olm.Package}))
	if len(pods.Items) != 1 {
		w.t.Fatalf("%d Pods of the operator", len(pods.Items))
	}
	annotations, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "annotations")
	fields := map[string]string{"metadata.name": pods.Items[0].Name, "metadata.namespace": namespace}
	for name, value := range annotations {
		fields["metadata.annotations['"+name+"']"] = value
	}
	env := map[string]string{}
	list, _, _ := unstructured.NestedSlice(container, "env")
	for _, e := range list {
		e := e.(map[string]any)
		name, _, _ := unstructured.NestedString(e, "name")
		value, _, _ := unstructured.NestedString(e, "value")
		if field, found, _ := unstructured.NestedString(e, "valueFrom", "fieldRef", "fieldPath"); found {
			value = fields[field]
		}
		env[name] = value
	}
	return env
}

func (o *operator) isReady() bool {
	answer, err := http.Get("http://127.0.0.1:8081/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// awaitUpgradeable waits until the operator has reported whether it may be replaced.
func (o *operator) awaitUpgradeable(status string) {
	o.t.Helper()
	o.await(o.condition+" says Upgradeable="+status, func() bool {
		c := o.get("OperatorCondition", namespace, o.condition)
		list, _, _ := unstructured.NestedSlice(c.Object, "spec", "conditions")
		for _, one := range list {
			if m := one.(map[string]any); m["type"] == "Upgradeable" && m["status"] == status {
				return true
			}
		}
		return false
	})
}

// checkRights checks that nothing was forbidden to the operator.
func (o *operator) checkRights() {
	o.t.Helper()
	text, err := os.ReadFile(o.logs)
	must(o.t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			o.t.Errorf("the operator: %s", line)
		}
	}
}
