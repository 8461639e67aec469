package node

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestWhichNodesAConfigMapWakes: entries wake instances, records those that are adopted, settings all. A record of a host without a Node wakes none.
func TestWhichNodesAConfigMapWakes(t *testing.T) {
	instance := record.Record{Entry: "192.0.2.1", Address: "192.0.2.1", Node: "win-instance", NodeUID: "uid-1"}
	adopting := record.Record{Machine: "uid-of-machine-2", Address: "192.0.2.2", Node: "win-adopting", NodeUID: "uid-2", Adopting: true}
	machine := record.Record{Machine: "uid-of-machine-3", Address: "192.0.2.3", Node: "win-machine", NodeUID: "uid-3"}
	joining := record.Record{Entry: "192.0.2.4", Address: "192.0.2.4"}
	objects := map[string]*corev1.ConfigMap{}
	for _, r := range []record.Record{instance, adopting, machine, joining} {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		name := record.ConfigMapName(r.ID())
		if objects[name] == nil {
			objects[name] = &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{hosts.RecordsLabel: "true"}}, Data: map[string]string{},
			}
		}
		objects[name].Data[string(r.ID())] = text
	}
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, o)
	}
	nodes := &Nodes{joiner: &configure.Joiner{Login: &hosts.Login{Records: &hosts.Records{Cache: fake.NewFakeClient(all...), Namespace: "n"}}}}
	for what, c := range map[string]struct {
		name   string
		labels map[string]string
		want   []string
	}{
		"entries":             {configure.InstancesName, nil, []string{"win-instance", "win-adopting"}},
		"settings":            {render.SettingsConfigMap, nil, []string{"win-instance", "win-adopting", "win-machine"}},
		"records":             {"windows-hosts-a", map[string]string{hosts.RecordsLabel: "true"}, []string{"win-adopting"}},
		"any other ConfigMap": {"other", nil, nil},
	} {
		config := base.NewObject(base.ConfigMapKind())
		config.SetName(c.name)
		config.SetLabels(c.labels)
		var got []string
		for _, r := range nodes.nodesOfConfig(t.Context(), config) {
			got = append(got, r.Name)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
