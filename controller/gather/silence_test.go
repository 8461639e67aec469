package gather

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
)

func TestMaskedProxyOfTheOperatorIsReported(t *testing.T) {
	operator := object(groupApps, "Deployment", OperatorNamespace, operatorName,
		`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"HTTP_PROXY","value":"http://****:****@p:1"}]}]}}}}`)
	if got := reasons(gatherFrom(t, Options{}, operator).Findings); !slices.Contains(got, "warning SecretStandIn spec.template.spec.containers") {
		t.Errorf("%q", got)
	}
}

// fromFile returns the object as it is read from a file.
func fromFile(o objects.Object) objects.Object {
	o.Source, o.Line = "a.yaml", 3
	return o
}

func TestUnknownFields(t *testing.T) {
	const mirrors = `"imageDigestMirrors":[{"source":"q.io","mirrors":["m.io"]}]`
	set := func(body string) objects.Object { return object(groupConfig, "ImageDigestMirrorSet", "", "a", body) }
	for name, c := range map[string]struct {
		object objects.Object
		want   []string
	}{
		"a field of a mirror set":        {fromFile(set(`{"spec":{"imageDigestMirror":[]}}`)), []string{"spec.imageDigestMirror"}},
		"a field in another case":        {fromFile(set(`{"spec":{"imagedigestmirrors":[]}}`)), []string{"spec.imagedigestmirrors"}},
		"a field in the wrong place":     {fromFile(set(`{` + mirrors + `}`)), []string{"imageDigestMirrors"}},
		"a field of an item":             {fromFile(set(`{"spec":{"imageDigestMirrors":[{"source":"q.io","mirror":"m.io","mirrors":["m.io"]}]}}`)), []string{"spec.imageDigestMirrors[0].mirror"}},
		"a mirror set of a cluster":      {fromFile(set(`{"metadata":{"uid":"u"},"spec":{"x":1}}`)), []string{"spec.x"}},
		"metadata and status":            {fromFile(set(`{"metadata":{"x":1},"status":{"x":1},"spec":{` + mirrors + `}}`)), nil},
		"a live cluster":                 {set(`{"spec":{"x":1}}`), nil},
		"Image":                          {fromFile(object(groupConfig, "Image", "", clusterName, `{"spec":{"registrySource":{}}}`)), []string{"spec.registrySource"}},
		"Proxy":                          {fromFile(object(groupConfig, "Proxy", "", clusterName, `{"spec":{"httpsproxy":"x"}}`)), []string{"spec.httpsproxy"}},
		"APIServer":                      {fromFile(object(groupConfig, "APIServer", "", clusterName, `{"spec":{"tlsProfile":{}}}`)), []string{"spec.tlsProfile"}},
		"APIServer of a newer cluster":   {fromFile(object(groupConfig, "APIServer", "", clusterName, `{"metadata":{"uid":"u"},"spec":{"tlsProfile":{}}}`)), nil},
		"Network":                        {fromFile(object(groupConfig, "Network", "", clusterName, `{"spec":{"serviceNetworks":[]}}`)), []string{"spec.serviceNetworks"}},
		"Network of the operator":        {fromFile(object(groupOperator, "Network", "", clusterName, `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlay":{}}}}}`)), []string{"spec.defaultNetwork.ovnKubernetesConfig.hybridOverlay"}},
		"the settings":                   {fromFile(object("", "ConfigMap", OperatorNamespace, settingsName, `{"dta":{}}`)), []string{"dta"}},
		"a kind that users do not write": {fromFile(object("", "Node", "", "a", `{"metadata":{"name":"a"},"spec":{"x":1}}`)), nil},
		"a kind of the machine operator": {fromFile(object(groupMachineConfig, "ControllerConfig", "", controllerConfigName, `{"spec":{"x":1}}`)), nil},
	} {
		var got []string
		for _, f := range gatherFrom(t, Options{}, c.object).Findings {
			if f.Reason == reason.FieldUnknown {
				got = append(got, f.Field)
				if f.Object.Source != "a.yaml" || f.Object.Line != 3 || f.Object.Kind == "" || f.Severity != bundle.SeverityWarning {
					t.Errorf("%s: the finding is %+v", name, f)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAbsentOptionalObjectsAreOneFinding(t *testing.T) {
	messages := func(r Result) []string {
		var list []string
		for _, f := range r.Findings {
			if f.Reason == reason.DefaultsAssumed {
				list = append(list, string(f.Severity)+": "+f.Message)
			}
		}
		return list
	}
	some := []objects.Object{object(groupConfig, "Proxy", "", clusterName, `{}`), object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{}`)}
	want := []string{"info: not in the inputs, so defaults are assumed: APIServer/cluster (TLS 1.2), Image/cluster (no registry is blocked or insecure), ConfigMap/windows-machine-config (the default settings)"}
	if diff := cmp.Diff(want, messages(gatherFrom(t, Options{}, some...))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := messages(gatherFrom(t, Options{Complete: true}, some...)); got != nil {
		t.Errorf("a live cluster gives %q", got)
	}
	all := append(some, object(groupConfig, "APIServer", "", clusterName, `{}`), object(groupConfig, "Image", "", clusterName, `{}`), object("", "ConfigMap", OperatorNamespace, settingsName, `{}`))
	if got := messages(gatherFrom(t, Options{}, all...)); got != nil {
		t.Errorf("with all objects: %q", got)
	}
}

// TestMustGatherIsNotTakenForMistakes reads the example must-gather with the wants of the commands.
func TestMustGatherIsNotTakenForMistakes(t *testing.T) {
	r, err := Gather(t.Context(), objects.NewPathsReader([]string{"../../golden/clusters/mustgather"}, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Reason == reason.DocumentSkipped || f.Reason == reason.FieldUnknown || f.Reason == reason.InputUnused {
			t.Errorf("%+v", f)
		}
	}
	if len(r.Nodes) == 0 {
		t.Error("the must-gather has no nodes")
	}
}
