package winnode

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/controller"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	simcluster "wmco/internal/test/simnode/cluster"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/testenv"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stubpayload"
	"wmco/payload"
	"wmco/payload/store"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// The node of the example cluster (golden/clusters/none), and where it reaches the API server.
const (
	pullNode    = "win-a"
	pullAddress = "10.0.140.21"
	pullServer  = "127.0.0.1:6443"
)

// kubeletClient is the kubelet's client certificate, which the kubeconfig of the agent names.
const kubeletClient = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`

// puller is a host that pulls from the API server, with the operator beside it. The host is alone in its network: it reaches the
// API server through the line, and nothing else.
type puller struct {
	machine
	client.Client
	line *sshtest.Line
	// payload is the folder with the executables, set its list.
	payload string
	set     payload.Set
	// identity is that of the node, with its first certificate.
	identity *rest.Config
	sets     int
	// second is another build of the node agent.
	second []byte
	// stop ends the operator.
	stop func()
}

// TestTheAgentPulls runs the node agent under the service manager of Wine, as the rendered bundle installs it, and the operator
// with the permissions that it ships with. Between them is a real API server.
func TestTheAgentPulls(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.AddAdapter(t, netip.MustParseAddr(pullAddress))
	p := newPuller(t, m)
	disk, registry := m.contents(t), m.registry(t, keyServices, keyVariables)
	p.install(t)
	for _, c := range []struct {
		name string
		run  func(*puller, *testing.T)
	}{
		{"the first published bundle is the one that was applied", (*puller).begins},
		{"a mirror set restarts nothing", (*puller).follows},
		{"a change that restarts the kubelet is confirmed by its Lease", (*puller).confirms},
		{"a kubelet that does not start is rolled back", (*puller).rollsBack},
		{"it repairs while the API server is away", (*puller).repairsAlone},
		{"it goes on with a new certificate", (*puller).takesCertificate},
		{"it stops while the API server does not answer, and starts again", (*puller).stopsAndStarts},
		{"it follows after a reboot", (*puller).reboots},
		{"it exchanges itself", (*puller).exchanges},
		{"a program that Windows cannot start is exchanged for the one before", (*puller).restores},
		{"a program that hangs is exchanged for the one before", (*puller).endsHanging},
		{"it removes everything, itself included, because its node ends", func(p *puller, t *testing.T) { p.endsNode(t, disk, registry) }},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.run(p, t) }) {
			t.Fatalf("the log of the agent:\n%s", m.logs(t, "INFO"))
		}
	}
}

func newPuller(t *testing.T, m machine) *puller {
	t.Helper()
	admin := server.Config(t)
	p := &puller{machine: m, Client: server.Client(t), payload: t.TempDir(), identity: server.Node(t, pullNode)}
	address, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	p.line = sshtest.NewLineFrom(t, m.Listen(t, pullServer), address.Host, sshtest.LineOptions{})
	clusters := filepath.Join(module, "golden", "clusters")
	server.Load(t, filepath.Join(clusters, "common"), filepath.Join(clusters, "none"), p.reachable(t, clusters, admin.CAData), filepath.Join(module, "deploy", "rbac"), filepath.Join(module, "deploy", "admission"))
	p.ships(t, build(t).node)
	p.operator(t)
	t.Cleanup(func() {
		p.stop()
		_ = p.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
	})
	return p
}

// ships makes the payload have this node agent.
func (p *puller) ships(t *testing.T, agent []byte) {
	t.Helper()
	b := build(t)
	err := stubpayload.Write(p.payload, stubpayload.Programs{Service: b.service, Runner: b.runner, Agent: agent, Version: "test"})
	if err == nil {
		p.set, err = store.Read(t.Context(), p.payload)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reachable returns a folder with the objects that say where the API server is, and who signs its certificate.
func (p *puller) reachable(t *testing.T, clusters string, ca []byte) string {
	t.Helper()
	folder := t.TempDir()
	for file, change := range map[string]struct{ from, to string }{
		"none/infrastructure.yaml":                   {`apiServerInternalURI: .*`, "apiServerInternalURI: https://" + pullServer},
		"common/secret-node-bootstrapper-token.yaml": {`\n  ca\.crt: .*`, "\n  ca.crt: " + base64.StdEncoding.EncodeToString(ca)},
	} {
		text, err := os.ReadFile(filepath.Join(clusters, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		pattern := regexp.MustCompile(change.from)
		if !pattern.Match(text) {
			t.Fatalf("%s has no %s", file, change.from)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), pattern.ReplaceAll(text, []byte(change.to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// operator runs until p.stop.
func (p *puller) operator(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { _ = simcluster.Record(ctx, server.Config(t), slog.New(slog.DiscardHandler)) }() // it ends with the context
	config := rest.CopyConfig(server.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + gather.OperatorNamespace + ":windows-machine-config-operator", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	log.SetLogger(logr.Discard())
	go func() {
		ended <- controller.Run(ctx, controller.Options{Config: config, Payload: p.set, HealthAddress: "0", MetricsAddress: "0", Log: testr.NewWithOptions(t, testr.Options{Verbosity: -1}), SkipNameValidation: true})
	}()
	p.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// rendered returns the bundle of the node as an archive, rendered from the cluster.
func (p *puller) rendered(t *testing.T) []byte {
	t.Helper()
	signs := signing.Keys{Live: p.Client, Client: p.Client, Namespace: gather.OperatorNamespace, Now: time.Now}
	public, err := signs.ReadPublicKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p.archiveOf(t, p.payload, desired.Source{
		SigningKeys: public,
		Objects:     objects.NewClusterReader(p.Client), Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: true},
		Set: p.set, Key: bundle.Key("a key of the user that the operator does not have"),
	})
}

// archiveOf returns the bundle of the node as an archive with all contents, rendered for the facts of the host as `wmco apply` does.
func (m machine) archiveOf(t *testing.T, executables string, source desired.Source) []byte {
	t.Helper()
	r := m.wmco(t, nil, "facts")
	facts, err := bundle.DecodeFacts(strings.NewReader(r.Stdout))
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("the facts of the host: %v, %+v", err, r)
	}
	source.Gather.Facts = facts
	hosts, err := desired.ReadHosts(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	node, err := hosts.SelectByNode(pullNode)
	if err != nil {
		t.Fatal(err)
	}
	all, findings, err := hosts.RenderBundles(node)
	if err != nil || findings.Refused() {
		t.Fatalf("%v, %+v", err, findings)
	}
	contents, err := desired.PayloadContents(executables)
	if err != nil {
		t.Fatal(err)
	}
	request, err := all[0].ArchiveRequest(contents)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := archive.Send(t.Context(), &stream, request); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// install applies the bundle, and then the kubelet gets its certificate.
func (p *puller) install(t *testing.T) {
	t.Helper()
	if r := p.wmco(t, p.rendered(t), "apply"); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	p.agentIs(t, "RUNNING")
	p.certify(t, p.identity)
}

// certify replaces the file of the certificate as the kubelet does: by another name, which is renamed
// (k8s.io/client-go util/certificate, FileStore).
func (p *puller) certify(t *testing.T, identity *rest.Config) {
	t.Helper()
	const updated = kubeletClient + ".tmp"
	p.WriteFile(t, updated, bytes.Join([][]byte{identity.CertData, identity.KeyData}, nil))
	if err := os.Rename(p.Path(updated), p.Path(kubeletClient)); err != nil {
		t.Fatal(err)
	}
}

func (p *puller) node(t *testing.T) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := p.Get(t.Context(), client.ObjectKey{Name: pullNode}, &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

// wanted returns the digest of the bundle that is published; empty before one is.
func (p *puller) wanted(t *testing.T) bundle.Digest {
	t.Helper()
	text := p.node(t).Annotations[published.DesiredAnnotation]
	if text == "" {
		return ""
	}
	d, err := published.DecodeDesired(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Bundle
}

// report returns what the agent reports, and its condition.
func (p *puller) report(t *testing.T) (published.Report, corev1.NodeCondition) {
	t.Helper()
	n := p.node(t)
	r, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	if err != nil {
		return published.Report{}, corev1.NodeCondition{}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == published.Condition {
			return r, c
		}
	}
	t.Fatalf("a report without a condition: %+v", r)
	return published.Report{}, corev1.NodeCondition{}
}

// mirror creates another mirror set, and returns the path of the hosts file that it causes. It returns when its bundle is
// published.
func (p *puller) mirror(t *testing.T) (path string) {
	t.Helper()
	p.sets++
	before, registry := p.wanted(t), fmt.Sprintf("r%d.example.com", p.sets)
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": fmt.Sprintf("set-%d", p.sets)},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": registry, "mirrors": []any{"mirror.example.com"}}}},
	}}
	if err := p.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mirror set is published", func() bool { return p.wanted(t) != before })
	return `C:\k\containerd\registries\` + registry + `\hosts.toml`
}

// follow waits until the agent reports its published bundle as applied, and checks the whole host by the bundle rendered now.
func (p *puller) follow(t *testing.T) published.Report {
	t.Helper()
	var r published.Report
	var c corev1.NodeCondition
	// The agent reads its certificate again after a minute.
	if err := testenv.Eventually(t.Context(), "the report about the published bundle", func() bool {
		r, c = p.report(t)
		return r.State == published.StateApplied && r.Applied == p.wanted(t)
	}); err != nil {
		t.Fatal(err)
	}
	if c.Status != corev1.ConditionTrue || c.Reason != string(published.StateApplied) {
		t.Errorf("condition %+v", c)
	}
	if r := p.wmco(t, p.rendered(t), "verify"); r.ExitCode != 0 {
		t.Errorf("the host differs from the cluster: %+v", r)
	}
	return r
}

// managed returns the modification times and inodes of all files that are no records of the agent and no logs.
func (p *puller) managed(t *testing.T) map[string]string {
	t.Helper()
	return without(without(p.writes(t), "ProgramData"), "var/log")
}

// events counts the events of the agent by their reason.
func (p *puller) events(t *testing.T) map[string]int {
	t.Helper()
	var list corev1.EventList
	if err := p.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == pullNode && e.Source.Component == "wmco-node" {
			counts[e.Reason+": "+e.Message]++
		}
	}
	return counts
}

// begun returns how often the agent was started, by its log.
func (p *puller) begun(t *testing.T) int {
	t.Helper()
	return strings.Count(p.logs(t, "INFO"), "msg=started")
}

// changes returns how often the agent has changed the host, by its log.
func (p *puller) changes(t *testing.T) int {
	t.Helper()
	return strings.Count(p.logs(t, "INFO"), "result=applied")
}

func (p *puller) begins(t *testing.T) {
	files, starts := p.managed(t), p.starts(t)
	r := p.follow(t)
	if r.Facts == nil || !r.Facts.HasAddress(pullAddress) || r.Facts.OSBuild != "10.0.20348" || r.Program == "" || len(r.Layers) != 2 {
		t.Errorf("%+v, facts %+v", r, r.Facts)
	}
	if diff := cmp.Diff(files, p.managed(t)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, p.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	if text := p.logs(t, "ERROR"); text != "" {
		t.Errorf("errors: %s", text)
	}
}

func (p *puller) follows(t *testing.T) {
	files, starts := p.managed(t), p.starts(t)
	begin := time.Now()
	path := p.mirror(t)
	published := time.Now()
	p.follow(t)
	t.Logf("published after %s, reported and verified after %s", published.Sub(begin).Round(time.Millisecond), time.Since(published).Round(time.Millisecond))
	if text := string(p.ReadFile(t, path)); !strings.Contains(text, "https://mirror.example.com") {
		t.Errorf("%s holds %q", path, text)
	}
	now := p.managed(t)
	for _, written := range []string{strings.ReplaceAll(strings.TrimPrefix(path, `C:\`), `\`, "/"), filepath.Dir(strings.ReplaceAll(strings.TrimPrefix(path, `C:\`), `\`, "/"))} {
		if now[written] == "" {
			t.Errorf("not written: %s", written)
		}
		delete(now, written)
	}
	if diff := cmp.Diff(files, now); diff != "" {
		t.Errorf("something else was written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, p.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	if n := p.begun(t); n != 1 {
		t.Errorf("the agent was started %d times", n)
	}
	want := fmt.Sprintf("BundleApplied: bundle %s: 1 file written, 0 services restarted", p.wanted(t).Short())
	eventually(t, "an event", func() bool { return p.events(t)[want] == 1 })
}

// maxPods sets the number of pods in the operator's settings, and returns when the bundle is published.
func (p *puller) maxPods(t *testing.T, n int) {
	t.Helper()
	before := p.wanted(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}}
	_, err := controllerutil.CreateOrUpdate(t.Context(), p.Client, settings, func() error {
		settings.Data = map[string]string{"config.yaml": fmt.Sprintf("kubelet:\n  maxPods: %d\n", n)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the settings are published", func() bool { return p.wanted(t) != before })
}

// renew renews the Lease of the node, as its kubelet does.
func (p *puller) renew(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: pullNode}}
	_, err := controllerutil.CreateOrUpdate(t.Context(), p.Client, lease, func() error {
		lease.Spec.RenewTime = new(metav1.NowMicro())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *puller) confirms(t *testing.T) {
	want := p.starts(t)
	want["kubelet"]++
	p.maxPods(t, 100)
	eventually(t, "the kubelet is started with the change", func() bool {
		r, c := p.report(t)
		return r.State == published.StateApplying && c.Status == corev1.ConditionFalse && cmp.Equal(want, p.starts(t))
	})
	eventually(t, "the change is confirmed", func() bool {
		p.renew(t)
		r, _ := p.report(t)
		return r.State != published.StateApplying
	})
	p.follow(t)
	if diff := cmp.Diff(want, p.starts(t)); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
}

// rollsBack sets the number of pods with which the stand-in for the kubelet does not start.
func (p *puller) rollsBack(t *testing.T) {
	before := p.ReadFile(t, pathConfig)
	p.maxPods(t, 64)
	var r published.Report
	var c corev1.NodeCondition
	eventually(t, "the agent reports that it has rolled back", func() bool {
		r, c = p.report(t)
		return r.State == published.StateRolledBack
	})
	if r.Desired != p.wanted(t) || r.Applied == r.Desired || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "kubelet") {
		t.Errorf("%+v, condition %+v", r, c)
	}
	if got := p.ReadFile(t, pathConfig); !bytes.Equal(before, got) {
		t.Errorf("%s holds %q", pathConfig, got)
	}
	starts := p.starts(t)
	p.maxPods(t, 100)
	p.follow(t)
	if diff := cmp.Diff(starts, p.starts(t)); diff != "" {
		t.Errorf("started again (-before +after):\n%s", diff)
	}
}

// repairsAlone restarts the agent, because its interval is minutes.
func (p *puller) repairsAlone(t *testing.T) {
	p.line.CutAfter(0)
	p.line.Reset()
	unknown := p.mirror(t)
	known := `C:\k\containerd\registries\r1.example.com\hosts.toml`
	want := p.ReadFile(t, known)
	p.sc(t, "stop")
	p.agentIs(t, "STOPPED")
	p.WriteFile(t, known, []byte("server = \"https://elsewhere.example.com\"\n"))
	p.WriteFile(t, pathConfig, []byte("maxPods: 1\r\n"))
	p.kill(t, "windows_exporter.exe")
	changes := p.changes(t)
	p.sc(t, "start")
	p.agentIs(t, "RUNNING")
	// After its start the agent waits ten seconds for the Node, which may be paused.
	for end := time.Now().Add(5 * time.Minute); p.changes(t) == changes && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
	if got := p.ReadFile(t, known); !bytes.Equal(want, got) {
		t.Errorf("%s holds %q", known, got)
	}
	eventually(t, "the log has why nothing is followed", func() bool { return strings.Contains(p.logs(t, "WARNING"), "watching Node failed") })
	if _, err := os.Stat(p.Path(unknown)); err == nil {
		t.Error("the mirror set was applied: the API server was not away")
	}
	p.line.CutAfter(-1)
	if r := p.follow(t); r.Repaired < 3 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(p.Path(unknown)); err != nil {
		t.Errorf("the newest mirror set: %v", err)
	}
}

// takesCertificate lets the API server refuse reports with the first certificate, as if it had expired.
func (p *puller) takesCertificate(t *testing.T) {
	renewed := server.Node(t, pullNode)
	p.admitOnly(t, renewed)
	p.certify(t, renewed)
	path := p.mirror(t)
	p.follow(t)
	if _, err := os.Stat(p.Path(path)); err != nil {
		t.Error(err)
	}
}

// admitOnly refuses reports about the node with any other certificate than this one.
func (p *puller) admitOnly(t *testing.T, identity *rest.Config) {
	t.Helper()
	certs, err := cert.ParseCertsPEM(identity.CertData)
	if err != nil {
		t.Fatal(err)
	}
	meta, forbidden := metav1.ObjectMeta{Name: "one-certificate"}, metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
		}}}},
		// The API server names the certificate of a request (kubernetes.io/docs/reference/access-authn-authz/authentication).
		Validations: []admissionv1.Validation{{Reason: &forbidden, Expression: fmt.Sprintf(
			`request.userInfo.username != "system:node:%s" || request.userInfo.extra["authentication.kubernetes.io/credential-id"].exists(id, id == "X509SHA256=%x")`,
			pullNode, sha256.Sum256(certs[0].Raw))}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	for _, o := range []client.Object{policy, binding} {
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Delete(context.Background(), o) })
	}
	first, second := testenv.NewClient(t, p.identity), testenv.NewClient(t, identity)
	eventually(t, "the first certificate is refused", func() bool { return dryReport(t, first) != nil })
	if err := dryReport(t, second); err != nil {
		t.Fatalf("the second certificate is refused: %v", err)
	}
}

// dryReport writes nothing.
func dryReport(t *testing.T, c client.Client) error {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pullNode}}
	before := n.DeepCopy()
	n.Annotations = map[string]string{"test": "x"}
	return c.Status().Patch(t.Context(), n, client.MergeFrom(before), client.DryRunAll)
}

func (p *puller) stopsAndStarts(t *testing.T) {
	p.line.Freeze()
	begin := time.Now()
	p.sc(t, "stop")
	p.agentIs(t, "STOPPED")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if text := p.sc(t, "query"); !strings.Contains(text, "WIN32_EXIT_CODE    : 0 ") {
		t.Errorf("the exit code is not 0: %s", text)
	}
	p.line.Thaw()
	files, starts, events := p.managed(t), p.starts(t), p.events(t)
	_, before := p.report(t)
	p.sc(t, "start")
	p.agentIs(t, "RUNNING")
	eventually(t, "the agent reports again", func() bool {
		_, now := p.report(t)
		return now.LastHeartbeatTime.After(before.LastHeartbeatTime.Time)
	})
	p.follow(t)
	if diff := cmp.Diff(files, p.managed(t)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, p.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(events, p.events(t)); diff != "" {
		t.Errorf("events (-before +after):\n%s", diff)
	}
}

// reboots ends all programs without a stop. The service starts with Windows.
func (p *puller) reboots(t *testing.T) {
	begun := p.begun(t)
	p.Reboot(t)
	p.keepRoots(t)
	path := p.mirror(t)
	p.follow(t)
	if n := p.begun(t); n != begun+1 {
		t.Errorf("the agent was started %d times", n-begun)
	}
	if _, err := os.Stat(p.Path(path)); err != nil {
		t.Error(err)
	}
}

// endsNode signs the removal of the node, as the operator does when it has drained it. A boot removes the program that has removed everything.
func (p *puller) endsNode(t *testing.T, disk map[string]string, registry string) {
	p.stop()
	signs := signing.Keys{Live: p.Client, Client: p.Client, Namespace: gather.OperatorNamespace, Now: time.Now}
	_, err := signs.ReadPublicKeys(t.Context())
	if err == nil {
		err = signs.BeginTerm(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	n := p.node(t)
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	text, err := signs.SignDesired(published.NodeID{Name: n.Name, UID: string(n.UID)}, d.ToRemove())
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, published.DesiredAnnotation, text)
	if err := p.Patch(t.Context(), n, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removal is reported", func() bool {
		r, _ := p.report(t)
		return r.Removal == published.RemovalProgress{Node: string(n.UID), Done: true}
	})
	eventually(t, "the service of the removal ends", func() bool {
		r := p.Run(t, winetest.Command{Path: "sc", Args: []string{"query", bundle.RemovalService}})
		return !strings.Contains(r.Stdout, "STATE")
	})
	p.Reboot(t)
	p.keepRoots(t)
	for _, pattern := range []string{bundle.RemovalProgram + "*", bundle.UploadFolder, kubeletClient} {
		if left, err := filepath.Glob(p.Path(pattern)); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
	if diff := cmp.Diff(disk, p.contents(t)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(registry, p.registry(t, keyServices, keyVariables)); diff != "" {
		t.Errorf("registry (-before +after):\n%s", diff)
	}
}
