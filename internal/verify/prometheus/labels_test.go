package prometheus

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// targetLabels are those that Prometheus adds to what it scrapes.
func targetLabels() []string {
	return []string{"job", "instance", "namespace", "pod", "service", "endpoint", "container", "prometheus"}
}

// metricName is the label with the name of a metric.
const metricName = "__name__"

// schema is the labels of each metric.
type schema map[string][]string

// served is what our endpoints and windows_exporter serve, as tests record it, and what others serve.
func served(t *testing.T) schema {
	t.Helper()
	all := schema{
		"up": nil,
		// github.com/kubernetes/kube-state-metrics, docs/metrics/workload/pod-metrics.md
		"kube_pod_container_info": {"container", "container_id", "image", "image_id", "image_spec", "namespace", "pod", "uid"},
		// windows_exporter 0.25, on nodes of the existing operator
		"windows_cs_physical_memory_bytes": {},
	}
	var exporter struct{ Metrics schema }
	decodeFile(t, "windows_exporter.json", &exporter)
	var own schema
	decodeFile(t, "operator.json", &own)
	var gateway schema
	decodeFile(t, "image_gateway.json", &gateway)
	for _, metrics := range []schema{own, exporter.Metrics, gateway} {
		if len(metrics) < 3 {
			t.Fatalf("%d metrics", len(metrics))
		}
		for name, list := range metrics {
			all[name] = list
		}
	}
	return all
}

const testdata = "../monitoring/testdata"

func decodeFile(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, name))
	if err == nil {
		err = yaml.Unmarshal(text, into) // JSON is YAML
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var histogramSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)

// of returns the labels of a metric, with those of its target; false if it is not served.
func (s schema) of(name string) ([]string, bool) {
	list, ok := s[name]
	if !ok {
		if list, ok = s[histogramSuffix.ReplaceAllString(name, "")]; ok && strings.HasSuffix(name, "_bucket") {
			list = append([]string{labels.BucketLabel}, list...)
		}
	}
	return slices.Concat(list, targetLabels()), ok
}

// result returns the labels that the series of an expression can have, and an error for one that it names and that they cannot have.
func (s schema) result(e parser.Node) (list []string, err error) {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return s.selected(e)
	case *parser.MatrixSelector:
		return s.result(e.VectorSelector)
	case *parser.SubqueryExpr:
		return s.result(e.Expr)
	case *parser.ParenExpr:
		return s.result(e.Expr)
	case *parser.UnaryExpr:
		return s.result(e.Expr)
	case *parser.StepInvariantExpr:
		return s.result(e.Expr)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil, nil
	case *parser.Call:
		for _, arg := range e.Args {
			more, err := s.result(arg)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		if strings.HasPrefix(e.Func.Name, "label_") {
			return nil, fmt.Errorf("%s: this test does not know what labels it makes", e)
		}
		return list, nil
	case *parser.AggregateExpr:
		inner, err := s.result(e.Expr)
		if err != nil {
			return nil, err
		}
		if err := among(e.Grouping, inner, e); err != nil || !e.Without {
			return e.Grouping, err
		}
		return slices.DeleteFunc(inner, func(l string) bool { return slices.Contains(e.Grouping, l) }), nil
	case *parser.BinaryExpr:
		return s.joined(e)
	}
	return nil, fmt.Errorf("%s: this test does not know %T", e, e)
}

func (s schema) selected(e *parser.VectorSelector) ([]string, error) {
	list, ok := s.of(e.Name)
	if !ok {
		return nil, fmt.Errorf("%s is not served", e.Name)
	}
	var named []string
	for _, m := range e.LabelMatchers {
		if m.Name != metricName {
			named = append(named, m.Name)
		}
	}
	return list, among(named, list, e)
}

func (s schema) joined(e *parser.BinaryExpr) ([]string, error) {
	left, err := s.result(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := s.result(e.RHS)
	if err != nil || e.VectorMatching == nil {
		return append(left, right...), err
	}
	matching, from := e.VectorMatching.MatchingLabels, right
	if e.VectorMatching.Card == parser.CardOneToMany {
		from = left
	}
	if err := cmp.Or(among(matching, left, e), among(matching, right, e), among(e.VectorMatching.Include, from, e)); err != nil {
		return nil, err
	}
	if e.VectorMatching.Card == parser.CardOneToMany {
		left = right
	}
	return append(left, e.VectorMatching.Include...), nil
}

// among returns an error for the first label that is not in a list.
func among(named, list []string, in parser.Node) error {
	for _, l := range named {
		if !slices.Contains(list, l) {
			return fmt.Errorf("%s: no label %q, only %s", in, l, strings.Join(list, ", "))
		}
	}
	return nil
}

// check returns the labels of an expression's result, and an error if it, or a text that is filled in for its series, names another one.
func (s schema) check(expr string, named []string) ([]string, error) {
	e, err := parser.ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	list, err := s.result(e)
	if err != nil {
		return nil, err
	}
	return list, among(named, list, e)
}

// What names labels: legends of panels, {{label}} (placeholder); annotations of alerts, $labels.label; and queries in those.
var (
	ofAlert = regexp.MustCompile(`\$labels\.(\w+)`)
	queried = regexp.MustCompile(`printf "([^"]+)" [^|]+\| query`)
)

// names returns what a pattern finds in a text.
func names(pattern *regexp.Regexp, text string) []string {
	var list []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		list = append(list, found[1])
	}
	return list
}

// rule is a rule of a PrometheusRule.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/monitoring/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(data), "\n---\n") {
			var o struct {
				Spec struct{ Groups []struct{ Rules []rule } }
			}
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, g := range o.Spec.Groups {
				all = append(all, g.Rules...)
			}
		}
	}
	return all
}

// TestLabelsExist: an alert or a panel about a label that no series has is never true, or draws one line for all.
func TestLabelsExist(t *testing.T) {
	s := served(t)
	alerts, queries := 0, 0
	for _, r := range rules(t) {
		var named []string
		for _, text := range r.Annotations {
			named = append(named, names(ofAlert, text)...)
			for _, query := range names(queried, text) {
				queries++
				if _, err := s.check(strings.ReplaceAll(query, "%q", `"x"`), nil); err != nil {
					t.Errorf("%s: %v", r.Alert, err)
				}
			}
		}
		list, err := s.check(r.Expr, named)
		if err != nil {
			t.Errorf("%s%s: %v", r.Record, r.Alert, err)
		}
		if r.Alert != "" {
			alerts++
			continue
		}
		for l := range r.Labels {
			list = append(list, l)
		}
		s[r.Record] = list
	}
	d, err := Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, p := range d.Panels() {
		for _, target := range p.Targets {
			targets++
			if _, err := s.check(target.Expr, names(placeholder, target.Legend)); err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
		}
	}
	if alerts < 10 || queries == 0 || targets < 10 {
		t.Errorf("%d alerts with %d queries, %d targets", alerts, queries, targets)
	}
}

// TestSamplesHaveTheLabelsThatAreServed: the series of the pictures, and those of promtool's tests, have the labels of the real ones. What
// Prometheus adds may be left out.
func TestSamplesHaveTheLabelsThatAreServed(t *testing.T) {
	var tests struct {
		Tests []struct {
			Input []struct{ Series string } `json:"input_series"`
		}
	}
	decodeFile(t, "rules_test.yaml", &tests)
	var lines []string
	for _, test := range tests.Tests {
		for _, series := range test.Input {
			lines = append(lines, series.Series)
		}
	}
	promtool := len(lines)
	text, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if promtool < 20 || len(lines) < promtool+40 {
		t.Errorf("%d series of promtool's tests, %d of the pictures", promtool, len(lines)-promtool)
	}
	s := served(t)
	for _, line := range lines {
		if err := s.compare(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// compare returns an error unless a series has exactly the labels that are served, but for those of its target.
func (s schema) compare(line string) error {
	series, _, err := parser.ParseSeriesDesc(line)
	if err != nil {
		return err
	}
	name := series.Get(metricName)
	want, ok := s.of(name)
	if !ok {
		return fmt.Errorf("%s is not served", name)
	}
	var have []string
	series.Range(func(l labels.Label) {
		if l.Name != metricName {
			have = append(have, l.Name)
		}
	})
	for _, l := range have {
		if !slices.Contains(want, l) {
			return fmt.Errorf("no label %q is served", l)
		}
	}
	for _, l := range s[histogramSuffix.ReplaceAllString(name, "")] {
		if name != "kube_pod_container_info" && !slices.Contains(have, l) {
			return fmt.Errorf("the label %q is missing", l)
		}
	}
	return nil
}

// TestMissingLabelsAreFound: each place in which an expression can name a label.
func TestMissingLabelsAreFound(t *testing.T) {
	s := schema{"a": {"x", "y"}, "b": {"x", "z"}, "h": {"x"}}
	for _, tt := range []struct{ expr, names, want string }{
		{`sum by (x, instance) (rate(a{y!="1"}[5m]))`, "x instance", ""},
		{`histogram_quantile(0.5, sum by (le, x) (rate(h_bucket[5m])))`, "x", ""},
		{`a * on (x) group_left (z) b`, "z", ""},
		{`sum without (y) (a) > 1`, "x", ""},
		{`absent(up{job="x"})`, "", "up is not served"},
		{`a{z="1"}`, "", `no label "z"`},
		{`sum by (z) (a)`, "", `no label "z"`},
		{`sum by (le) (h_count)`, "", `no label "le"`},
		{`max(a)`, "x", `no label "x"`},
		{`sum without (y) (a)`, "y", `no label "y"`},
		{`a * on (y) b`, "", `no label "y"`},
		{`a * on (x) group_left (y) b`, "", `no label "y"`},
		{`sum(a) + sum by (q) (b)`, "", `no label "q"`},
		{`-(max_over_time(a{q="1"}[5m:1m]))`, "", `no label "q"`},
		{`label_replace(a, "q", "", "", "")`, "", "does not know"},
	} {
		_, err := s.check(tt.expr, strings.Fields(tt.names))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with %q: %v", tt.expr, tt.names, err)
		}
	}
	if got := names(ofAlert, "{{ $labels.x }} {{ range query }}{{ end }} {{$labels.y_z}}"); !slices.Equal(got, []string{"x", "y_z"}) {
		t.Errorf("%q", got)
	}
	for line, want := range map[string]string{
		`a{x="1",y="2",job="j"} 1x2`: "", `h_bucket{x="1",le="2"} 1x2`: "", `a{x="1"} 1x2`: `"y" is missing`, `a{x="1",y="2",z="3"} 1x2`: `no label "z"`, `c 1x2`: "c is not served",
	} {
		if err := s.compare(line); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
