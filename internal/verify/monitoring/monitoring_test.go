package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"wmco/internal/test/testenv/manifests"
	"wmco/payload"
)

const deploy = "../../../deploy"

// rule is a rule of a PrometheusRule.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// groups returns the groups of all PrometheusRules.
func groups(t *testing.T) []group {
	t.Helper()
	var all []group
	for _, o := range objects(t, "monitoring", "PrometheusRule") {
		var r struct{ Spec struct{ Groups []group } }
		decode(t, o, &r)
		all = append(all, r.Spec.Groups...)
	}
	if len(all) < 2 {
		t.Fatalf("%d groups of rules", len(all))
	}
	return all
}

// objects returns the manifests of a kind in a folder of deploy.
func objects(t *testing.T, folder, kind string) []*unstructured.Unstructured {
	t.Helper()
	list, err := manifests.Read(filepath.Join(deploy, folder))
	if err != nil {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	for _, m := range list {
		if m.GetKind() == kind {
			found = append(found, m.Unstructured)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s in %s", kind, folder)
	}
	return found
}

func decode(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	text, err := o.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlerts(t *testing.T) {
	pages := map[string]bool{}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			page := "docs/runbooks/" + r.Alert + ".md"
			pages[r.Alert+".md"] = true
			if r.Labels["severity"] != "warning" || r.Labels["namespace"] == "" || r.For == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
				!strings.HasSuffix(r.Annotations["runbook_url"], page) {
				t.Errorf("%s lacks severity, namespace, time, summary, description or page: %+v", r.Alert, r)
			}
			text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
			if err != nil {
				t.Error(err)
			}
			for _, heading := range []string{"# " + r.Alert + "\n", "## Meaning\n", "## Impact\n", "## Diagnosis\n", "## Mitigation\n"} {
				if !strings.Contains(string(text), heading) {
					t.Errorf("%s lacks %q", page, heading)
				}
			}
		}
	}
	files, err := os.ReadDir("../../../docs/runbooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !pages[f.Name()] {
			t.Errorf("there is no alert for docs/runbooks/%s", f.Name())
		}
	}
}

// What is between quotes, braces and brackets of an expression names no metric, nor do the labels of an aggregation or a match.
var (
	noMetrics   = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	identifiers = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	suffixes    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metricsIn returns the metrics that an expression names.
func metricsIn(expr string) []string {
	expr = noMetrics.ReplaceAllString(noMetrics.ReplaceAllString(expr, " "), " ")
	names := map[string]bool{}
	for _, word := range identifiers.FindAllString(expr, -1) {
		if !strings.HasSuffix(word, "(") && !slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, word) {
			names[word] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func TestMetricsIn(t *testing.T) {
	got := metricsIn(`sum by (a, b) (rate(x_total{l="y_total",m!="}"}[5m]) * on (c) group_left (d) z:w) / count(1e3 * v_bucket) > 0 and u`)
	if want := []string{"e3", "u", "v_bucket", "x_total", "z:w"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// served returns the metrics of our endpoints, and those of others that rules may name.
func served(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{
		"up": true, // Prometheus itself
		// kube-state-metrics (github.com/kubernetes/kube-state-metrics, docs/metrics/workload/pod-metrics.md)
		"kube_pod_container_info": true,
		// windows_exporter 0.25 (collector cs), which the existing operator ships before 4.22
		"windows_cs_physical_memory_bytes": true,
	}
	// A metric has its labels here: internal/verify/prometheus holds the expressions to them.
	var own, gateway map[string][]string
	read(t, "operator.json", &own)
	read(t, "image_gateway.json", &gateway)
	var exporter struct {
		Version string
		Metrics map[string][]string
	}
	read(t, "windows_exporter.json", &exporter)
	if exporter.Version != payload.ExporterVersion {
		t.Errorf("the metrics of windows_exporter are those of %s, and the payload has %s: list them again from its source", exporter.Version, payload.ExporterVersion)
	}
	for _, metrics := range []map[string][]string{own, gateway, exporter.Metrics} {
		for name := range metrics {
			all[name] = true
		}
	}
	return all
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestMetricsExist: an expression about a metric that is not served is never true.
func TestMetricsExist(t *testing.T) {
	known := served(t)
	expressions := map[string]string{}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			expressions[r.Record+r.Alert] = r.Expr
		}
	}
	rules := len(expressions)
	for _, o := range objects(t, "dashboard", "ConfigMap") {
		for name, text := range panels(t, o) {
			expressions[name] = text
		}
	}
	if rules < 20 || len(expressions) < rules+10 {
		t.Errorf("%d rules and %d panels", rules, len(expressions)-rules)
	}
	for where, expr := range expressions {
		found := metricsIn(expr)
		if len(found) == 0 {
			t.Errorf("%s: no metric in %s", where, expr)
		}
		for _, name := range found {
			if !known[name] && !known[suffixes.ReplaceAllString(name, "")] {
				t.Errorf("%s: %s is not served", where, name)
			}
		}
	}
}

// panels returns the expressions of a dashboard.
func panels(t *testing.T, o *unstructured.Unstructured) map[string]string {
	t.Helper()
	if o.GetLabels()["console.openshift.io/dashboard"] != "true" || o.GetNamespace() != "openshift-config-managed" {
		t.Errorf("the console does not find %s %s", o.GetKind(), o.GetName())
	}
	data, _, err := unstructured.NestedStringMap(o.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for file, text := range data {
		var d struct {
			Rows []struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr, RefID string }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for _, target := range p.Targets {
					all[p.Title+" "+target.RefID] = target.Expr
				}
			}
		}
	}
	return all
}

// TestTargets: what Prometheus is told to scrape is what the Services and the nodes have.
func TestTargets(t *testing.T) {
	services := map[string]*unstructured.Unstructured{}
	for _, folder := range []string{"monitoring", "manager"} {
		for _, s := range objects(t, folder, "Service") {
			services[s.GetName()] = s
		}
	}
	for _, m := range objects(t, "monitoring", "ServiceMonitor") {
		s := services[m.GetName()]
		if s == nil || s.GetNamespace() != m.GetNamespace() || s.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"] == "" {
			t.Errorf("no Service with a serving certificate for ServiceMonitor %s", m.GetName())
			continue
		}
		endpoints, _, err := unstructured.NestedSlice(m.Object, "spec", "endpoints")
		if err != nil || len(endpoints) != 1 {
			t.Fatalf("endpoints of %s: %v", m.GetName(), err)
		}
		name, _, _ := unstructured.NestedString(endpoints[0].(map[string]any), "tlsConfig", "serverName")
		if want := s.GetName() + "." + s.GetNamespace() + ".svc"; name != want {
			t.Errorf("%s: the server name is %q, and the certificate is for %q", m.GetName(), name, want)
		}
	}
}

// TestPromtoolAcceptsTheRules has promtool parse and test the rules.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	promtool := os.Getenv("WMCO_PROMTOOL")
	if promtool == "" {
		promtool = "promtool"
	}
	if _, err := exec.LookPath(promtool); err != nil {
		t.Skip("promtool is not available: make promtool")
	}
	text, err := yaml.Marshal(map[string]any{"groups": prometheus(groups(t))})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	tests, err := os.ReadFile(filepath.Join("testdata", "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"rules.yaml": text, "test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "rules.yaml"}, {"test", "rules", "test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// prometheus returns groups in the form of Prometheus' own files.
func prometheus(list []group) []map[string]any {
	var all []map[string]any
	for _, g := range list {
		var rules []map[string]any
		for _, r := range g.Rules {
			rule := map[string]any{"expr": r.Expr}
			for key, value := range map[string]string{"record": r.Record, "alert": r.Alert, "for": r.For} {
				if value != "" {
					rule[key] = value
				}
			}
			if r.Alert != "" {
				rule["labels"], rule["annotations"] = r.Labels, r.Annotations
			}
			rules = append(rules, rule)
		}
		all = append(all, map[string]any{"name": g.Name, "rules": rules})
	}
	return all
}

// Dashboards and alerts of users ask for what the rules of the existing operator record (its bundle, windows-prometheus-k8s-rules). One that
// this operator does not record is named in the document for those who take over.
func TestRecordingRulesOfTheExistingOperatorAreThereOrNamed(t *testing.T) {
	existing := []string{
		"instance:node_cpu_utilisation:rate1m", "instance:node_cpu:rate:sum", "node_filesystem_size_bytes", "node_filesystem_avail_bytes", "node_network_receive_bytes_total",
		"node_network_transmit_bytes_total", "node_filesystem_free_bytes", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", "node_cpu_info", "pod:container_cpu_usage:sum",
		"container_memory_working_set_bytes", "pod_interface_network:container_network_receive_bytes:irate5m", "pod_interface_network:container_network_transmit_bytes_total:irate5m",
	}
	recorded := map[string]bool{}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			recorded[r.Record] = true
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "takeover.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range existing {
		if !recorded[name] && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is neither recorded nor named in docs/takeover.md", name)
		}
	}
}
