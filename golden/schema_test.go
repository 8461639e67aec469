package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// variant matches the schemas of clusters that run without preview features.
var variant = regexp.MustCompile(`^(-SelfManagedHA)?(-Default|-OKD)?\.crd\.yaml$`)

// schemas loads the CustomResourceDefinitions of github.com/openshift/api, each one once.
type schemas struct {
	root   string
	loaded map[string][]crd
}

// of returns the schemas of a kind, one for each variant of clusters that run without preview features.
func (s schemas) of(t *testing.T, id string) []crd {
	t.Helper()
	if crds, ok := s.loaded[id]; ok {
		return crds
	}
	where, ok := openshiftKinds[id]
	if !ok {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(s.root, where.folder, "zz_generated.crd-manifests", "*_01_"+where.plural+"*.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version := id[strings.Index(id, "/")+1 : strings.Index(id, " ")]
	for _, file := range files {
		if _, rest, _ := strings.Cut(filepath.Base(file), "_01_"+where.plural); variant.MatchString(rest) {
			s.loaded[id] = append(s.loaded[id], readCRD(t, file, version))
		}
	}
	return s.loaded[id]
}

type crd struct {
	file       string
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func readCRD(t *testing.T, file, version string) crd {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	for _, v := range definition.Spec.Versions {
		if v.Name != version {
			continue
		}
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			t.Fatalf("converting %s: %v", file, err)
		}
		structural, err := schema.NewStructural(&props)
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		validator, _, err := validation.NewSchemaValidator(&props)
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		return crd{filepath.Base(file), structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	t.Fatalf("%s has no version %s", file, version)
	return crd{}
}

// findings returns what an API server would refuse or drop.
func (c crd) findings(ctx context.Context, object map[string]any) []string {
	var all []string
	for _, path := range pruning.PruneWithOptions(runtime.DeepCopyJSON(object), c.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		all = append(all, "unknown field "+path)
	}
	errs := validation.ValidateCustomResource(nil, object, c.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	broken, _ := c.rules.Validate(ctx, nil, c.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, broken...) {
		all = append(all, err.Error())
	}
	return all
}

// decodeStrict decodes a value into the type of empty and refuses fields which that type does not have.
func decodeStrict(empty any, value map[string]any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(reflect.New(reflect.TypeOf(empty)).Interface())
}

// walkStrings visits every string of a decoded document.
func walkStrings(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			walkStrings(item, visit)
		}
	case map[string]any:
		for _, item := range v {
			walkStrings(item, visit)
		}
	}
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding module %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}
