package status

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/nodestate"
	"wmco/internal/test/testenv"
)

const namespace = "windows"

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// written is a writer on the real API server, with a clock.
type written struct {
	*Writer
	t   *testing.T
	now time.Time
}

// TestStatus defines the kind once: its removal takes time.
func TestStatus(t *testing.T) {
	t.Run("without the definition", checkUnserved)
	server.Load(t, filepath.Join("..", "..", "deploy", "crd"))
	if err := testenv.Eventually(t.Context(), "the kind", func() bool {
		return apierrors.IsNotFound(server.Client(t).Get(t.Context(), client.ObjectKeyFromObject(emptyObject(namespace)), emptyObject(namespace)))
	}); err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]func(*testing.T){
		"it is written when it changes": checkChanges, "writers keep the conditions of others": checkOthers,
		"many refused nodes are listed in part": checkMany, "the summary is of what all writers say": checkSummary,
		"hosts are listed with their number": checkHosts, "columns and descriptions": checkColumns, "the definition allows one object": checkName,
		"a condition that is False has its page": checkPages,
	} {
		t.Run(name, check)
	}
}

func start(t *testing.T) *written {
	t.Helper()
	c := server.Client(t)
	t.Cleanup(func() { _ = c.Delete(context.Background(), emptyObject(namespace)) })
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	w := &written{t: t, now: time.Date(2026, time.January, 1, 12, 0, 0, 5, time.UTC)}
	w.Writer = &Writer{Live: c, Client: c, Namespace: namespace, Owner: "a", Now: func() time.Time { return w.now }}
	return w
}

func (w *written) write(s Status) {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	if err := w.WriteStatus(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

func (w *written) get() (*unstructured.Unstructured, Status) {
	w.t.Helper()
	u := emptyObject(namespace)
	if err := w.Live.Get(w.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		w.t.Fatal(err)
	}
	s, err := statusOf(u)
	if err != nil {
		w.t.Fatal(err)
	}
	return u, s
}

func condition(of string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: of, Status: status, Reason: "Because", Message: message}
}

func checkChanges(t *testing.T) {
	w := start(t)
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, time.January, 1, 12, minute, 0, 0, time.UTC).Local())
	}
	settled := func(c metav1.Condition, minute int) metav1.Condition {
		c.ObservedGeneration, c.LastTransitionTime = 1, at(minute)
		return c
	}
	refused := []Refused{{Node: "win-b", Reason: "R", Message: "m"}, {Node: "win-a", Reason: "R", Message: "m", Fix: "f"}}
	sorted := []Refused{refused[1], refused[0]}
	bad, good := condition(InputsAccepted, metav1.ConditionFalse, "no"), condition(InputsAccepted, metav1.ConditionTrue, "yes")
	other := bad
	other.Message = "still no"
	for _, step := range []struct {
		name    string
		write   Status
		want    Status
		written bool
	}{
		{"the first", Status{Conditions: []metav1.Condition{bad}, Nodes: &Nodes{Total: 2, Refused: 2}, Refused: refused},
			Status{Conditions: []metav1.Condition{settled(bad, 1)}, Nodes: &Nodes{Total: 2, Refused: 2}, Refused: sorted}, true},
		{"the same", Status{Conditions: []metav1.Condition{bad}, Nodes: &Nodes{Total: 2, Refused: 2}, Refused: refused},
			Status{Conditions: []metav1.Condition{settled(bad, 1)}, Nodes: &Nodes{Total: 2, Refused: 2}, Refused: sorted}, false},
		{"another message keeps the time", Status{Conditions: []metav1.Condition{other}, Nodes: &Nodes{Total: 2, Refused: 1}, Refused: sorted[:1]},
			Status{Conditions: []metav1.Condition{settled(other, 1)}, Nodes: &Nodes{Total: 2, Refused: 1}, Refused: sorted[:1]}, true},
		{"another status", Status{Conditions: []metav1.Condition{good}, Nodes: &Nodes{Total: 2, Updated: 2}},
			Status{Conditions: []metav1.Condition{settled(good, 4)}, Nodes: &Nodes{Total: 2, Updated: 2}}, true},
	} {
		before := ""
		u := emptyObject(namespace)
		if w.Live.Get(t.Context(), client.ObjectKeyFromObject(u), u) == nil {
			before = u.GetResourceVersion()
		}
		w.write(step.write)
		now, got := w.get()
		got.Conditions = slices.DeleteFunc(got.Conditions, func(c metav1.Condition) bool { return IsSummary(c.Type) })
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if changed := now.GetResourceVersion() != before; changed != step.written {
			t.Errorf("%s: written %t", step.name, changed)
		}
	}
}

// checkOthers: a second reconciler writes something else, without the nodes.
func checkOthers(t *testing.T) {
	w := start(t)
	first := Status{Conditions: []metav1.Condition{condition(InputsAccepted, metav1.ConditionTrue, "yes")}, Nodes: &Nodes{Total: 1}}
	w.write(first)
	w.Owner = "b"
	w.write(Status{Conditions: []metav1.Condition{condition("Joined", metav1.ConditionFalse, "no key")}})
	w.Owner = "a"
	w.write(first)
	_, got := w.get()
	if len(got.Conditions) != 2+3 || got.Nodes == nil || got.Nodes.Total != 1 || meta.FindStatusCondition(got.Conditions, "Joined") == nil {
		t.Errorf("%+v", got)
	}
}

// checkPages: two writers whose conditions are summed up, with pages, agree on the text.
func checkPages(t *testing.T) {
	w := start(t)
	w.AddPage = func(message, reason string, most int) string {
		return fmt.Sprintf("%s (%s in %d)", message, reason, most)
	}
	other := *w.Writer
	other.Owner = "b"
	a, b := Status{Conditions: []metav1.Condition{condition("A", metav1.ConditionFalse, "no")}}, Status{Conditions: []metav1.Condition{condition("B", metav1.ConditionTrue, "yes")}}
	w.write(a)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(other.WriteStatus(t.Context(), b))
	before, s := w.get()
	w.write(a)
	must(other.WriteStatus(t.Context(), b))
	if now, _ := w.get(); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("what is there is written again")
	}
	for of, want := range map[string]string{"A": "no (" + condition("A", "", "").Reason + " in 32768)", "B": "yes"} {
		if c := meta.FindStatusCondition(s.Conditions, of); c == nil || c.Message != want {
			t.Errorf("condition %s is %v, want the message %q", of, c, want)
		}
	}
}

func checkMany(t *testing.T) {
	w := start(t)
	s := Status{Nodes: &Nodes{Total: 1000, Refused: 1000}}
	for i := range 1000 {
		s.Refused = append(s.Refused, Refused{Node: fmt.Sprintf("win-%03d", i), Reason: "R", Message: strings.Repeat("m", 1024)})
	}
	w.write(s)
	if _, got := w.get(); len(got.Refused) != MaxRefused || got.Nodes.Refused != 1000 {
		t.Errorf("%d are listed, %+v", len(got.Refused), got.Nodes)
	}
}

// checkSummary: a writer that has read the object before another one wrote does not sum up outdated conditions.
func checkSummary(t *testing.T) {
	w := start(t)
	w.Expected = []string{InputsAccepted, "Joined"}
	state := func(wanted metav1.ConditionStatus) {
		t.Helper()
		_, got := w.get()
		if c := meta.FindStatusCondition(got.Conditions, Ready); c == nil || c.Status != wanted || c.LastTransitionTime.IsZero() || c.ObservedGeneration != 1 {
			t.Errorf("%+v, want %s", c, wanted)
		}
	}
	first := Status{Conditions: []metav1.Condition{condition(InputsAccepted, metav1.ConditionTrue, "yes")}, Nodes: &Nodes{Total: 1, Updated: 1}}
	w.write(first)
	state(metav1.ConditionUnknown)
	joined := Status{Conditions: []metav1.Condition{condition("Joined", metav1.ConditionTrue, "yes")}}
	w.Owner = "b"
	w.write(joined)
	state(metav1.ConditionTrue)
	// The other writer is between reading and writing.
	live := w.Live
	w.Live = interrupted{live, func() {
		w.Live, w.Owner = live, "a"
		w.write(Status{Conditions: []metav1.Condition{condition(InputsAccepted, metav1.ConditionFalse, "no")}, Nodes: first.Nodes})
		w.Owner = "b"
	}}
	joined.Conditions[0].Message = "still"
	w.write(joined)
	state(metav1.ConditionFalse)
	w.Owner = "a"
	w.write(first)
	state(metav1.ConditionTrue)
}

// interrupted has something happen after a read.
type interrupted struct {
	client.Reader
	then func()
}

func (i interrupted) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := i.Reader.Get(ctx, key, o, options...)
	i.then()
	return err
}

// checkHosts: one writer gives the hosts, and another one does not take them away.
func checkHosts(t *testing.T) {
	w := start(t)
	s := Status{Nodes: &Nodes{}, HostsWaiting: new(1000)}
	for i := range 1000 {
		s.Hosts = append(s.Hosts, Host{Name: fmt.Sprintf("win-%03d", i), Address: "192.0.2.1", State: nodestate.Degraded, Reason: "R", Message: strings.Repeat("m", 1024), Fix: "f"})
	}
	w.write(s)
	w.Owner = "b"
	w.write(Status{Conditions: []metav1.Condition{condition("Joined", metav1.ConditionFalse, "no key")}})
	_, got := w.get()
	if len(got.Hosts) != MaxHosts || *got.HostsWaiting != 1000 || !cmp.Equal(got.Hosts[0], s.Hosts[0]) {
		t.Errorf("%d are listed, %+v", len(got.Hosts), got.HostsWaiting)
	}
	if c := meta.FindStatusCondition(got.Conditions, Degraded); c == nil || c.Status != metav1.ConditionTrue || !strings.HasSuffix(c.Message, "; and 998 more") {
		t.Errorf("%+v", c)
	}
	w.Owner = "a"
	w.write(Status{Nodes: &Nodes{}, HostsWaiting: new(0)})
	if _, got := w.get(); len(got.Hosts) != 0 || *got.HostsWaiting != 0 {
		t.Errorf("%+v", got)
	}
}

// checkColumns: people look at a table, and ask oc explain what its columns mean.
func checkColumns(t *testing.T) {
	w := start(t)
	w.write(Status{Conditions: []metav1.Condition{condition(InputsAccepted, metav1.ConditionTrue, "yes")}, Nodes: &Nodes{Total: 6, Updated: 5, Degraded: 1}, HostsWaiting: new(2), Hosts: []Host{{Name: "a", State: nodestate.Degraded, Reason: "R", Message: "m"}}})
	table := &metav1.Table{}
	c, err := rest.UnversionedRESTClientFor(withCodec(server.Config(t)))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get().AbsPath("apis", Group, Version, "namespaces", namespace, "windowsnodesstatuses").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		if column.Description == "" {
			t.Errorf("column %s has no description", column.Name)
		}
		if column.Priority == 0 {
			names = append(names, column.Name)
		}
	}
	if want := []string{"Name", "Ready", "Progressing", "Degraded", "Nodes", "Updated", "DegradedNodes", "Waiting", "Age"}; !cmp.Equal(want, names) {
		t.Errorf("the columns are %q", names)
	}
	if diff := cmp.Diff([]any{Name, "False", "False", "True", int64(6), int64(5), int64(1), int64(2)}, table.Rows[0].Cells[:8]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func withCodec(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	scheme := runtime.NewScheme()
	metav1.AddMetaToScheme(scheme) //nolint:errcheck // of a new scheme
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return config
}

func checkName(t *testing.T) {
	w := start(t)
	u := emptyObject(namespace)
	u.SetName("another")
	if err := w.Client.Create(t.Context(), u); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "windows-nodes") {
		t.Errorf("%v", err)
	}
}

func checkUnserved(t *testing.T) {
	c := server.Client(t)
	w := Writer{Live: c, Client: c, Namespace: namespace, Owner: "a", Now: time.Now}
	if err := w.WriteStatus(t.Context(), Status{}); !meta.IsNoMatchError(err) {
		t.Errorf("%v", err)
	}
}
