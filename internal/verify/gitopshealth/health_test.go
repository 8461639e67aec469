package gitopshealth

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var docs = filepath.Join("..", "..", "..", "docs", "gitops")

// object is a WindowsNodesStatus with these conditions: type, status, reason.
func object(conditions ...[3]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "windowsmachineconfig.openshift.io/v1alpha1", "kind": "WindowsNodesStatus",
		"metadata": map[string]any{"name": "windows-nodes", "namespace": "openshift-windows-machine-config-operator", "generation": int64(1)},
	}}
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c[0], "status": c[1], "reason": c[2], "message": "message of " + c[0], "observedGeneration": int64(1), "lastTransitionTime": "2026-11-25T10:00:00Z"})
	}
	if len(list) > 0 {
		u.Object["status"] = map[string]any{"conditions": list}
	}
	return u
}

// cases are what the operator writes (controller/status/summary_test.go), and what the three programs make of it.
func cases() map[string]struct {
	object             *unstructured.Unstructured
	argo, message      string
	flux, kstatusAlone status.Status
} {
	ready, idle, fine := [3]string{"Ready", "True", "AllNodesUpdated"}, [3]string{"Progressing", "False", "NothingChanges"}, [3]string{"Degraded", "False", "NothingWrong"}
	not := func(why string) [3]string { return [3]string{"Ready", "False", why} }
	return map[string]struct {
		object             *unstructured.Unstructured
		argo, message      string
		flux, kstatusAlone status.Status
	}{
		"all is done":       {object(ready, idle, fine), "Healthy", "message of Ready", status.CurrentStatus, status.CurrentStatus},
		"a rollout":         {object(not("RollingOut"), [3]string{"Progressing", "True", "RollingOut"}, fine, [3]string{"RolledOut", "False", "RollingOut"}), "Progressing", "message of Ready", status.InProgressStatus, status.InProgressStatus},
		"a paused rollout":  {object(not("RolloutPaused"), idle, fine, [3]string{"RolledOut", "False", "RolloutPaused"}), "Suspended", "message of RolledOut", status.InProgressStatus, status.InProgressStatus},
		"a stopped rollout": {object(not("RolloutStopped"), idle, [3]string{"Degraded", "True", "RolloutStopped"}, [3]string{"RolledOut", "False", "RolloutStopped"}), "Degraded", "message of Degraded", status.FailedStatus, status.InProgressStatus},
		"a host that cannot join during a rollout": {object(not("LoginRefused"), [3]string{"Progressing", "True", "RollingOut"}, [3]string{"Degraded", "True", "LoginRefused"}), "Degraded", "message of Degraded", status.FailedStatus, status.InProgressStatus},
		"the operator has just started":            {object([3]string{"Ready", "Unknown", "Starting"}, idle, fine), "Progressing", "message of Ready", status.InProgressStatus, status.InProgressStatus},
		"nothing is written yet":                   {object(), "Progressing", "the operator has not written a status yet", status.InProgressStatus, status.CurrentStatus},
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestArgoCD: Argo CD evaluates the script with the object as obj, and reads status and message of what it returns.
func TestArgoCD(t *testing.T) {
	var config struct {
		Data map[string]string `json:"data"`
	}
	read(t, "argocd-health.yaml", &config)
	script := config.Data["resource.customizations.health.windowsmachineconfig.openshift.io_WindowsNodesStatus"]
	if script == "" {
		t.Fatal("the ConfigMap has no script under the key that Argo CD reads")
	}
	for name, c := range cases() {
		l := lua.NewState(lua.Options{SkipOpenLibs: true})
		defer l.Close()
		for _, lib := range []struct {
			name string
			open lua.LGFunction
		}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
			if err := l.CallByParam(lua.P{Fn: l.NewFunction(lib.open), NRet: 0, Protect: true}, lua.LString(lib.name)); err != nil {
				t.Fatal(err)
			}
		}
		l.SetGlobal("obj", value(l, c.object.Object))
		if err := l.DoString(script); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hs, ok := l.Get(-1).(*lua.LTable)
		if !ok || hs.RawGetString("status").String() != c.argo || hs.RawGetString("message").String() != c.message {
			t.Errorf("%s: %v: %s, want %s: %s", name, hs.RawGetString("status"), hs.RawGetString("message"), c.argo, c.message)
		}
	}
}

// value is a value of an object in Lua.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	case map[string]any:
		t := l.NewTable()
		for key, item := range v {
			t.RawSetString(key, value(l, item))
		}
		return t
	case []any:
		t := l.NewTable()
		for _, item := range v {
			t.Append(value(l, item))
		}
		return t
	}
	return lua.LNil
}

// TestFlux: kustomize-controller evaluates the expressions of its Kustomization.
func TestFlux(t *testing.T) {
	var k struct {
		Spec struct {
			Checks []struct {
				APIVersion, Kind, Name, Namespace string
			} `json:"healthChecks"`
			Expressions []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, "flux-health.yaml", &k)
	if len(k.Spec.Checks) != 1 || len(k.Spec.Expressions) != 1 || k.Spec.Checks[0].Kind != k.Spec.Expressions[0].Kind {
		t.Fatalf("%+v", k)
	}
	evaluator, err := cel.NewStatusEvaluator(&k.Spec.Expressions[0].HealthCheckExpressions)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases() {
		if u := c.object; u.GetName() != k.Spec.Checks[0].Name || u.GetNamespace() != k.Spec.Checks[0].Namespace || u.GetAPIVersion() != k.Spec.Expressions[0].APIVersion {
			t.Errorf("the object of the check is %+v", k.Spec.Checks[0])
		}
		got, err := evaluator.Evaluate(t.Context(), c.object)
		if name == "nothing is written yet" { // Flux looks again while an expression cannot be evaluated
			if err == nil && got.Status == status.CurrentStatus {
				t.Errorf("%s: %s", name, got.Status)
			}
			continue
		}
		if err != nil || got.Status != c.flux {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.flux)
		}
	}
}

// TestKstatus: what waits without an expression, such as flux with wait: true, kpt or Helm, never takes a failed rollout for done.
func TestKstatus(t *testing.T) {
	for name, c := range cases() {
		got, err := status.Compute(c.object)
		if err != nil || got.Status != c.kstatusAlone {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.kstatusAlone)
		}
	}
}
