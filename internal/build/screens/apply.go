package screens

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/inputs/warnings"
	"wmco/controller/status"
	"wmco/internal/test/testenv/readonly"
)

// Change and definition of the scene, below golden.
const (
	never      = "../hack/demo-changes/never.yaml"
	definition = "../deploy/crd/windowsnodesstatus.yaml"
)

// warned: a change that would stop all pods is applied. What oc prints is what the API server has from the operator,
// and the columns of the definition.
func warned(ctx context.Context, f *Fleet) (command, output string, err error) {
	lines, err := f.fleetWarnings(ctx)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "Warning: %s\n", l)
	}
	out.WriteString("imagedigestmirrorset.config.openshift.io/microsoft created\n\n$ oc get windowsnodesstatus -n " + gather.OperatorNamespace + "\n")
	table, err := f.statusTable()
	return "oc apply -f mirrors.yaml", out.String() + table, err
}

// fleetWarnings returns what the operator answers about the change.
func (f *Fleet) fleetWarnings(ctx context.Context) ([]string, error) {
	list, err := f.Objects()
	if err != nil {
		return nil, err
	}
	// The cluster has a set already, so it serves the kind.
	list = append(list, unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": "quay"},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": "quay.io", "mirrors": []any{"mirror.example.com/quay"}}}},
	}})
	server := httptest.NewServer(&readonly.API{Objects: list})
	defer server.Close()
	cluster, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(f.golden, never))
	if err != nil {
		return nil, err
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	w := warnings.Warner{
		Read: func(ctx context.Context, from client.Reader) (*desired.Hosts, error) {
			return desired.ReadHosts(ctx, desired.Source{
				Objects: objects.NewClusterReader(from), Gather: gather.Options{Complete: true}, Key: bundle.Key(key),
				WithoutCredentials: true,
			})
		},
		Cache: cluster, Wants: gather.WantedObjects(gather.OperatorNamespace), Log: logr.Discard(),
	}
	kind := object.GroupVersionKind()
	req := admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Name: object.GetName(), Operation: admissionv1.Create,
	}
	req.Object.Raw = raw
	return w.Handle(ctx, admission.Request{AdmissionRequest: req}).Warnings, nil
}

// statusTable returns the table that kubectl prints of the status while the change is held.
func (f *Fleet) statusTable() (string, error) {
	n := len(f.Nodes)
	s := status.Status{
		Conditions: []metav1.Condition{{
			Type: status.InputsConfirmed, Status: metav1.ConditionFalse, Reason: "NodeImageUnreachable",
			Message: "held",
		}},
		Nodes: &status.Nodes{Total: n, Updated: n}, HostsWaiting: new(0),
	}.WithSummary(nil)
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": status.Name}, "status": s})
	if err != nil {
		return "", err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return "", err
	}
	if text, err = os.ReadFile(filepath.Join(f.golden, definition)); err != nil {
		return "", err
	}
	var kind apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return "", err
	}
	heads, cells := []string{"NAME"}, []string{status.Name}
	for _, c := range kind.Spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority > 0 {
			continue
		}
		cell := "3d" // the age, which the object does not have
		if c.Type != "date" {
			if cell, err = valueAt(object, c.JSONPath); err != nil {
				return "", err
			}
		}
		heads, cells = append(heads, strings.ToUpper(c.Name)), append(cells, cell)
	}
	return columnsOf(heads, cells), nil
}

func valueAt(object map[string]any, path string) (string, error) {
	p := jsonpath.New("column")
	if err := p.Parse("{" + path + "}"); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := p.Execute(&out, object)
	return out.String(), err
}

// columnsOf aligns lines as kubectl does (k8s.io/cli-runtime/pkg/printers, GetNewTabWriter).
func columnsOf(lines ...[]string) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(w, strings.Join(l, "\t"))
	}
	_ = w.Flush() // into memory
	return out.String()
}
