package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"wmco/controller/fleet"
	"wmco/internal/build/pages"
	"wmco/internal/build/schema"
	"wmco/internal/cli"
	"wmco/report/mustgather"
)

// pagesTo is the folder that make generate has the pages written to.
var pagesTo = flag.String("pages", "", "folder to write the generated pages of docs to")

func TestTheGeneratedPagesAreThoseOfTheProgram(t *testing.T) {
	files, err := pages.Pages(filepath.Join("..", ".."), rootCommand(app{}), answerTypes())
	if err != nil {
		t.Fatal(err)
	}
	if *pagesTo != "" {
		if err := pages.Write(*pagesTo, files); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s: run make generate; a field that scripts may use is not removed (-want +got):\n%s", name, diff)
		}
	}
}

// answerTypes are the types of what -o json prints, by command; of commands that print a line for each event, of one line.
func answerTypes() map[string]reflect.Type {
	list := map[string]reflect.Type{
		"apply":        reflect.TypeFor[hostEvent](),
		"diff":         reflect.TypeFor[reviewed](),
		"explain":      reflect.TypeFor[explanation](),
		"gather":       reflect.TypeFor[mustgather.Summary](),
		"golden check": reflect.TypeFor[reviewed](),
		"machineset":   reflect.TypeFor[machineSetAnswer](),
		"preflight":    reflect.TypeFor[[]preflightJSON](),
		"render":       reflect.TypeFor[renderJSON](),
		"selftest":     reflect.TypeFor[[]testedJSON](),
		"status":       reflect.TypeFor[fleet.Fleet](),
		"userdata":     reflect.TypeFor[userDataAnswer](),
		"validate":     reflect.TypeFor[validateJSON](),
		"verify":       reflect.TypeFor[[]comparedJSON](),
		"version":      reflect.TypeFor[versionAnswer](),
	}
	for _, v := range annotationVerbs() {
		list[v.name] = reflect.TypeFor[verbAnswer]()
	}
	return list
}

// Every command that answers in JSON has a schema.
func TestEveryAnswerHasASchema(t *testing.T) {
	var check func(*cobra.Command, string)
	check = func(c *cobra.Command, path string) {
		f := c.Flags().Lookup("output")
		if _, ok := answerTypes()[path]; f != nil && strings.Contains(f.Usage, "json") != ok {
			t.Errorf("wmco %s: has a schema: %t", path, ok)
		}
		for _, below := range c.Commands() {
			check(below, strings.TrimSpace(path+" "+below.Name()))
		}
	}
	check(rootCommand(app{now: time.Now}), "")
}

// What commands print is what their schemas say.
func TestAnswersFitTheirSchemas(t *testing.T) {
	t.Chdir(docFolder(t, "aws"))
	now := func() time.Time { return time.Date(2026, 6, 3, 0, 0, 0, 0, time.UTC) }
	if err := os.WriteFile("change.yaml", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator}, data: {config.yaml: 'debug: true'}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, now: now}, []string{"golden", "update", "windows"}); status != 0 {
		t.Fatalf("golden update: %d", status)
	}
	for _, line := range []string{
		"status", "validate --from must-gather", "render --from must-gather --all", "diff --from cluster --from change.yaml --against cluster",
		"diff --from clusters/common --from clusters/aws --from change.yaml --against clusters/common --against clusters/aws", "golden check windows",
		"machineset --name winworker --from cluster --image ami-0823a3180dad3c9c3", "userdata --platform aws --public-key key.pub", "version --client", "explain logs", "explain InputUnused",
		"pause --all --dry-run",
	} {
		var out, errOut bytes.Buffer
		args := append(strings.Fields(line), "-o", "json")
		status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: now}, args)
		if status != cli.ExitDone && status != cli.ExitDiffers {
			t.Errorf("wmco %s: status %d: %s", line, status, errOut.String())
			continue
		}
		command := args[0]
		if command == "golden" {
			command += " " + args[1]
		}
		var answer any
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			t.Errorf("wmco %s: %v", line, err)
			continue
		}
		for _, problem := range misfits(pages.Schema(command, answerTypes()[command]), answer, "") {
			t.Errorf("wmco %s: %s", line, problem)
		}
	}
}

// misfits lists where a value does not match a schema. It knows the keywords that schemas here have.
func misfits(s schema.Schema, value any, path string) []string {
	types, _ := s["type"].([]string)
	if one, ok := s["type"].(string); ok {
		types = []string{one}
	}
	if len(types) > 0 && !slices.Contains(types, typeOf(value)) && !(typeOf(value) == "integer" && slices.Contains(types, "number")) {
		return []string{path + " is " + typeOf(value)}
	}
	var problems []string
	switch v := value.(type) {
	case []any:
		items, _ := s["items"].(schema.Schema)
		for _, item := range v {
			problems = append(problems, misfits(items, item, path+"[]")...)
		}
	case map[string]any:
		properties, known := s["properties"].(schema.Schema)
		for name, below := range v {
			of, ok := properties[name].(schema.Schema)
			if known && !ok {
				problems = append(problems, path+"."+name+" is not in the schema")
			}
			problems = append(problems, misfits(of, below, path+"."+name)...)
		}
		required, _ := s["required"].([]string)
		for _, name := range required {
			if _, ok := v[name]; !ok {
				problems = append(problems, path+"."+name+" is required")
			}
		}
	}
	return problems
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
