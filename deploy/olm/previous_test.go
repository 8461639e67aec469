package olm

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// previous is the folder with what the bundle of the release before brought: `make olm-previous` copies it when a release is made.
//
// While the operator does not allow its upgrade, OLM executes the InstallPlan of the next release all the same: the files of the new bundle
// are in effect, and the old operator runs on with them (internal/test/olmtest). Only the ClusterServiceVersion waits.
const previous = "previous"

// TestABundleTakesNothingFromThePreviousRelease: no right, no field of a definition and no Service, as the operator of the release before
// goes on working with the files of the new one.
func TestABundleTakesNothingFromThePreviousRelease(t *testing.T) {
	before := readFiles(t, previous)
	if len(before) < 10 {
		t.Fatalf("only %d files in %s", len(before), previous)
	}
	for _, loss := range losses(t, before, installedFiles(exampleBundle(t))) {
		t.Error(loss)
	}
}

// installedFiles are the files of a bundle that OLM installs whether the upgrade is held or not.
func installedFiles(b Files) Files {
	files := Files{}
	for name, text := range b {
		if short, ok := strings.CutPrefix(name, "manifests/"); ok && !strings.Contains(name, "clusterserviceversion") {
			files[short] = text
		}
	}
	return files
}

// losses lists what the objects of before have that those of after lack.
func losses(t *testing.T, before, after Files) []string {
	t.Helper()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		text, ok := after[name]
		if !ok {
			list = append(list, name+" is gone")
			continue
		}
		var old, now map[string]any
		parse(t, before[name], &old)
		parse(t, text, &now)
		var lost []string
		switch {
		case strings.HasSuffix(name, "role.yaml"):
			lost = lostRights(t, before[name], text)
		case strings.HasSuffix(name, "_customresourcedefinition.yaml"):
			lost = lostVersions(old, now)
		case strings.HasSuffix(name, "_service.yaml"):
			lost = lostParts("spec", old["spec"], now["spec"])
		case strings.HasSuffix(name, "rolebinding.yaml"):
			lost = append(lostParts("roleRef", old["roleRef"], now["roleRef"]), lostParts("subjects", old["subjects"], now["subjects"])...)
		}
		for _, l := range lost {
			list = append(list, name+": "+l)
		}
	}
	return list
}

// right is one verb on one resource or object.
type right struct{ group, resource, name, verb string }

func rightsOf(t *testing.T, text []byte) map[right]bool {
	t.Helper()
	var r rbacv1.ClusterRole
	parse(t, text, &r)
	all := map[right]bool{}
	for _, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						all[right{group, resource, name, verb}] = true
					}
				}
			}
		}
	}
	return all
}

func lostRights(t *testing.T, before, after []byte) []string {
	t.Helper()
	now := rightsOf(t, after)
	var lost []string
	for r := range rightsOf(t, before) {
		if !now[r] && !now[right{r.group, r.resource, "", r.verb}] {
			lost = append(lost, strings.Join(strings.Fields("the right to "+r.verb+" "+r.resource+" "+r.name), " "))
		}
	}
	slices.Sort(lost)
	return lost
}

// lostParts returns the values of old that now lacks. A list may get longer.
func lostParts(path string, old, now any) []string {
	switch old := old.(type) {
	case map[string]any:
		have, _ := now.(map[string]any)
		var lost []string
		for _, key := range slices.Sorted(maps.Keys(old)) {
			lost = append(lost, lostParts(path+"."+key, old[key], have[key])...)
		}
		return lost
	case []any:
		have, _ := now.([]any)
		var lost []string
		for i, one := range old {
			if !slices.ContainsFunc(have, func(x any) bool { return len(lostParts("", one, x)) == 0 }) {
				lost = append(lost, fmt.Sprintf("%s[%d]", path, i))
			}
		}
		return lost
	}
	if !reflect.DeepEqual(old, now) {
		return []string{path}
	}
	return nil
}

// lostVersions compares the versions of a definition.
func lostVersions(old, now map[string]any) []string {
	versions := func(crd map[string]any) map[string]map[string]any {
		all := map[string]map[string]any{}
		list, _ := crd["spec"].(map[string]any)["versions"].([]any)
		for _, v := range list {
			v := v.(map[string]any)
			all[v["name"].(string)] = v
		}
		return all
	}
	var lost []string
	have := versions(now)
	for name, v := range versions(old) {
		is := have[name]
		if served, _ := is["served"].(bool); !served {
			lost = append(lost, "version "+name)
			continue
		}
		schema := func(v map[string]any) any { return v["schema"].(map[string]any)["openAPIV3Schema"] }
		lost = append(lost, lostFields(name, schema(v), schema(is))...)
		lost = append(lost, lostParts(name+".subresources", v["subresources"], is["subresources"])...)
	}
	return lost
}

// told are the keywords of a schema that only tell.
var told = []string{"description", "title", "example", "default"}

// lostFields compares two schemas: a field that was removed, and a value that was accepted and may not be any more.
func lostFields(path string, old, now any) []string {
	was, _ := old.(map[string]any)
	is, ok := now.(map[string]any)
	if !ok {
		return []string{"field " + path}
	}
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		switch key {
		case "properties":
			fields, _ := was[key].(map[string]any)
			have, _ := is[key].(map[string]any)
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				lost = append(lost, lostFields(path+"."+f, fields[f], have[f])...)
			}
		case "items", "additionalProperties":
			if _, isSchema := was[key].(map[string]any); isSchema {
				lost = append(lost, lostFields(path+"[]", was[key], is[key])...)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		switch {
		case slices.Contains(told, key) || key == "properties" || key == "items" || key == "additionalProperties":
		case key == "enum": // values may be added
			if _, limited := was[key]; !limited || len(lostParts("", was[key], is[key])) > 0 {
				lost = append(lost, path+": "+key)
			}
		case key == "required": // fields may become optional
			if len(lostParts("", is[key], was[key])) > 0 {
				lost = append(lost, path+": "+key)
			}
		case !reflect.DeepEqual(was[key], is[key]):
			lost = append(lost, path+": "+key)
		}
	}
	return lost
}

// TestLossesAreFound changes the bundle as no release may.
func TestLossesAreFound(t *testing.T) {
	const (
		role, crd, service = "windows-machine-config-operator_role.yaml", "windowsnodesstatuses.windowsmachineconfig.openshift.io_customresourcedefinition.yaml", "windows-exporter_service.yaml"
		binding            = "windows-machine-config-operator_rolebinding.yaml"
	)
	for name, change := range map[string]struct {
		file   string
		change func(o map[string]any) map[string]any
	}{
		"a file": {service, func(map[string]any) map[string]any { return nil }},
		"a rule": {role, func(o map[string]any) map[string]any { o["rules"] = o["rules"].([]any)[1:]; return o }},
		"a verb": {role, func(o map[string]any) map[string]any {
			r := o["rules"].([]any)[0].(map[string]any)
			r["verbs"] = r["verbs"].([]any)[1:]
			return o
		}},
		"all objects": {role, func(o map[string]any) map[string]any {
			o["rules"].([]any)[0].(map[string]any)["resourceNames"] = []any{"other"}
			return o
		}},
		"a subject": {binding, func(o map[string]any) map[string]any { o["subjects"] = []any{}; return o }},
		"a port":    {service, func(o map[string]any) map[string]any { o["spec"].(map[string]any)["ports"] = []any{}; return o }},
		"a version": {crd, func(o map[string]any) map[string]any { versionOf(o)["served"] = false; return o }},
		"a field":   {crd, func(o map[string]any) map[string]any { delete(propertiesOf(o), "status"); return o }},
		"a type": {crd, func(o map[string]any) map[string]any {
			propertiesOf(o)["kind"].(map[string]any)["type"] = "integer"
			return o
		}},
		"a new need": {crd, func(o map[string]any) map[string]any { schemaOf(o)["required"] = []any{"spec"}; return o }},
		"a new rule": {crd, func(o map[string]any) map[string]any {
			schemaOf(o)["x-kubernetes-validations"] = []any{map[string]any{"rule": "false"}}
			return o
		}},
	} {
		after := installedFiles(exampleBundle(t))
		var o map[string]any
		parse(t, after[change.file], &o)
		if o = change.change(o); o == nil {
			delete(after, change.file)
		} else {
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			after[change.file] = text
		}
		if found := losses(t, readFiles(t, previous), after); len(found) == 0 {
			t.Errorf("%s is taken away, and nothing is found", name)
		}
	}
	more := installedFiles(exampleBundle(t))
	more["another_role.yaml"] = []byte("kind: Role")
	more[role] = append(more[role], "- apiGroups: [example.com]\n  resources: [any]\n  verbs: [get]\n"...)
	if found := losses(t, readFiles(t, previous), more); len(found) > 0 {
		t.Errorf("a new bundle may bring more: %q", found)
	}
}

func versionOf(crd map[string]any) map[string]any {
	return crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
}

func schemaOf(crd map[string]any) map[string]any {
	return versionOf(crd)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
}

func propertiesOf(crd map[string]any) map[string]any {
	return schemaOf(crd)["properties"].(map[string]any)
}
