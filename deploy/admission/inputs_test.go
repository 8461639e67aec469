package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/internal/test/testenv"
	"wmco/render"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// TestInputsWithoutEffectAreRefused at once, and nothing that the operator accepts is.
func TestInputsWithoutEffectAreRefused(t *testing.T) {
	admin := cluster.Client(t)
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	instances, instancesBinding := CheckInstances(namespace)
	settings, settingsBinding := CheckSettings(namespace)
	for _, o := range []client.Object{instances, instancesBinding, settings, settingsBinding} {
		create(t, o)
	}
	try := func(o *corev1.ConfigMap) error { return admin.Create(t.Context(), o.DeepCopy(), client.DryRunAll) }
	for _, o := range []*corev1.ConfigMap{configMap(Instances, map[string]string{"10.0.0.300": "username=a"}), configMap(Settings, map[string]string{"config.yaml": "nonsense: 1"})} {
		if err := testenv.Eventually(t.Context(), "the policy about "+o.Name, func() bool { return apierrors.IsInvalid(try(o)) }); err != nil {
			t.Fatal(err)
		}
	}

	const address, username = "has the IPv4 address or the DNS name", "has the one line username=NAME"
	for _, entry := range []struct{ key, value, refused string }{
		{"10.0.0.3", "username=Administrator", ""},
		{"10.0.0.3", " username = DOMAIN\\user \n", ""},
		{"10.0.0.3", "username=a user with blanks\r\n", ""},
		{"10.0.0.3", "\n\nusername=user@example.com", ""},
		{"win-a.example.com", "username=a", ""},
		{"WIN-A", "username=a", ""},
		{"10.0.0.3", "user=Administrator", username},
		{"10.0.0.3", "Administrator", username},
		{"10.0.0.3", "username=", username},
		{"10.0.0.3", "username=a\npassword=b", username},
		{"10.0.0.3", "", username},
		{"10.0.0.300", "username=a", address},
		{"10.0.3", "username=a", address},
		{"127.0.0.1", "username=a", address},
		{"localhost", "username=a", address},
		{"win_a", "username=a", address},
		{"win-.example.com", "username=a", address},
	} {
		checkAnswer(t, entry.key+": "+entry.value, try(configMap(Instances, map[string]string{entry.key: entry.value})), entry.refused)
	}

	const unknown, key = "knows these settings: acceptedFindings, adoption, ", "in the key config.yaml"
	for _, s := range []struct {
		text, refused string
	}{
		{"", ""},
		{"---\n# a comment\nrollout:\n  maxUnavailable: 1\n\nlogs: {size: 10Mi}\n", ""},
		{`{"rollout": {"paused": true}}`, ""},
		{"kubelet:\n  maxPods: 100\n  nested:\n    anything: 1\n", ""},
		{"roll-out: {}\n", unknown},
		{"rollout: {}\nmaxUnavailable: 1\n", unknown},
		{"Rollout: {}\n", unknown},
	} {
		_, findings := render.DecodeSettings(s.text, bundle.Ref{Kind: "ConfigMap", Namespace: namespace, Name: Settings})
		if s.refused != "" && !findings.Refused() {
			t.Errorf("%q is refused, and the operator accepts it", s.text)
		}
		checkAnswer(t, s.text, try(configMap(Settings, map[string]string{"config.yaml": s.text})), s.refused)
	}
	checkAnswer(t, "no data", try(configMap(Settings, nil)), "")
	checkAnswer(t, "another key", try(configMap(Settings, map[string]string{"config.yml": "rollout: {}"})), key)
	checkAnswer(t, "another ConfigMap", try(configMap("other", map[string]string{"config.yaml": "nonsense: 1", "10.0.0.300": "a"})), "")
	checkOldEntries(t, admin, instancesBinding)
}

func checkAnswer(t *testing.T, name string, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("%q: %v", name, err)
	case refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), refused)):
		t.Errorf("%q: %v, want %q", name, err, refused)
	}
}

// checkOldEntries: one that was there before the policy does not keep others from being changed.
func checkOldEntries(t *testing.T, admin client.Client, binding client.Object) {
	t.Helper()
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	old := configMap(Instances, map[string]string{"10.0.0.300": "a"})
	if err := testenv.Eventually(t.Context(), "the end of the policy", func() bool { return admin.Create(t.Context(), old) == nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), old) })
	binding.SetResourceVersion("")
	create(t, binding)
	bad := old.DeepCopy()
	bad.Data["10.0.0.301"] = "username=a"
	if err := testenv.Eventually(t.Context(), "the policy again", func() bool {
		return apierrors.IsInvalid(admin.Update(t.Context(), bad.DeepCopy(), client.DryRunAll))
	}); err != nil {
		t.Fatal(err)
	}
	good := old.DeepCopy()
	good.Data["10.0.0.30"] = "username=a"
	checkAnswer(t, "a good entry beside an old one", admin.Update(t.Context(), good, client.DryRunAll), "")
}
