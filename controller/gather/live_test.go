package gather_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/internal/golden"
	"wmco/internal/test/testenv"
	"wmco/render"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

const goldens = "../../golden"

// files are paths below the folder of the goldens.
func files(paths ...string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Join(goldens, p)
	}
	return out
}

// everyKind has an object of every kind that is read.
func everyKind() []string {
	return files("clusters/common", "clusters/aws", "clusters/none/windows-instances.yaml",
		"clusters/traits/mirrors", "clusters/traits/operator-config", "clusters/traits/pinned-images", "clusters/traits/trusted-ca", "cases/none-mirrors-exact/policy.yaml")
}

// recorder keeps the result of a reader.
type recorder struct {
	objects.Reader
	set objects.Set
}

func (r *recorder) Read(ctx context.Context, wants []objects.Want) (objects.Set, error) {
	// The operator does not read the install config, which previews alone need.
	wants = slices.DeleteFunc(slices.Clone(wants), func(w objects.Want) bool { return w.Namespace == "kube-system" })
	var err error
	r.set, err = r.Reader.Read(ctx, wants)
	return r.set, err
}

// gatherFrom gathers from a complete source. It returns the objects that were read as well.
func gatherFrom(t *testing.T, source objects.Reader, facts []bundle.Facts) (gather.Result, objects.Set) {
	t.Helper()
	r := &recorder{Reader: source}
	result, err := gather.Gather(t.Context(), r, gather.Options{Complete: true, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	return result, r.set
}

// gatherLive gathers as the user of the configuration.
func gatherLive(t *testing.T, config *rest.Config, facts ...bundle.Facts) (gather.Result, objects.Set) {
	t.Helper()
	return gatherFrom(t, objects.NewClusterReader(testenv.NewClient(t, config)), facts)
}

// sameInputs compares by value, including secrets but not the places of objects.
func sameInputs() gocmp.Options {
	return gocmp.Options{
		cmpopts.IgnoreFields(bundle.Ref{}, "Source", "Line", "Digest"),
		cmpopts.IgnoreFields(render.Node{}, "MachineUID"), // the API server gives new ones
		gocmp.Comparer(func(a, b bundle.Secret) bool { return a == b }),
		cmpopts.EquateEmpty(),
	}
}

// digests returns the digests of every node's bundle and its layers.
func digests(t *testing.T, r gather.Result) map[string][3]bundle.Digest {
	t.Helper()
	fleet, findings, err := render.NewFleet(r.Cluster, render.Options{Key: bundle.Key("the same for both")})
	if err != nil || fleet == nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	found := map[string][3]bundle.Digest{}
	for _, n := range r.Nodes {
		b, findings, err := fleet.Node(n)
		if err != nil || findings.Refused() {
			t.Fatalf("%v: %+v", err, findings)
		}
		found[n.ID()] = [3]bundle.Digest{b.Digest, b.ClusterDigest, b.NodeDigest}
	}
	return found
}

// TestLiveClusterEqualsItsFiles checks every case whose files are those of a whole cluster.
func TestLiveClusterEqualsItsFiles(t *testing.T) {
	server.Config(t)
	notWhole := map[string]string{
		"aws-must-gather":            "a must-gather holds no Secrets",
		"aws-must-gather-4.19":       "a must-gather holds no Secrets",
		"none-elided-secrets":        "its Secrets hold no values",
		"none-instances-bad-entries": "an API server refuses the IPv6 address, as a key cannot hold a colon",
	}
	cases, err := filepath.Glob(filepath.Join(goldens, "cases", "*", golden.CaseFile))
	if err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		if notWhole[filepath.Base(dir)] != "" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { compareWithFiles(t, dir) })
	}
}

// TestServerAcceptsExamplesNotUsedInCases checks that the other examples are valid objects too.
func TestServerAcceptsExamplesNotUsedInCases(t *testing.T) {
	server.Config(t)
	for name, paths := range map[string][]string{
		"mirrors":     files("clusters/common", "clusters/none", "clusters/traits/mirrors"),
		"must-gather": files("clusters/mustgather"),
	} {
		t.Run(name, func(t *testing.T) { server.Load(t, paths...) })
	}
}

func compareWithFiles(t *testing.T, dir string) {
	c, err := golden.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(c.From))
	for i, p := range c.From {
		paths[i] = filepath.Join(dir, p)
	}
	facts := factsOf(t, dir, c)
	want, _ := gatherFrom(t, objects.NewPathsReader(paths, nil), facts)
	// Only files can give an object twice, and only files can hold nothing that is read.
	want.Findings = slices.DeleteFunc(want.Findings, func(f bundle.Finding) bool {
		return f.Reason == reason.Replaced || f.Reason == reason.InputUnused
	})
	server.Load(t, paths...)
	got, _ := gatherLive(t, server.Config(t), facts...)
	if diff := gocmp.Diff(want, got, sameInputs()); diff != "" {
		t.Errorf("inputs (-files +cluster):\n%s", diff)
	}
	wantDigests := digests(t, want)
	if len(wantDigests) == 0 {
		t.Error("the case has no Windows machine")
	}
	if diff := gocmp.Diff(wantDigests, digests(t, got)); diff != "" {
		t.Errorf("digests of bundle, cluster layer and node layer (-files +cluster):\n%s", diff)
	}
}

func factsOf(t *testing.T, dir string, c golden.Case) []bundle.Facts {
	t.Helper()
	if c.Facts == "" {
		return nil
	}
	facts, err := gather.FactsFile(filepath.Join(dir, c.Facts))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// rights are all rights that gathering needs.
func rights() []testenv.Rule {
	rule := func(namespace, verb, resource string, names ...string) testenv.Rule {
		parsed := schema.ParseGroupResource(resource)
		return testenv.Rule{Namespace: namespace, PolicyRule: rbacv1.PolicyRule{
			Verbs: []string{verb}, APIGroups: []string{parsed.Group}, Resources: []string{parsed.Resource}, ResourceNames: names,
		}}
	}
	return []testenv.Rule{
		rule("", "get", "apiservers.config.openshift.io", "cluster"),
		rule("", "get", "clusterversions.config.openshift.io", "version"),
		rule("", "get", "controllerconfigs.machineconfiguration.openshift.io", "machine-config-controller"),
		rule("", "get", "images.config.openshift.io", "cluster"),
		rule("", "get", "infrastructures.config.openshift.io", "cluster"),
		rule("", "get", "machineconfigpools.machineconfiguration.openshift.io", "worker"),
		rule("", "get", "networks.config.openshift.io", "cluster"),
		rule("", "get", "networks.operator.openshift.io", "cluster"),
		rule("", "get", "proxies.config.openshift.io", "cluster"),
		rule("", "list", "clusterimagepolicies.config.openshift.io"),
		rule("", "list", "imagecontentsourcepolicies.operator.openshift.io"),
		rule("", "list", "imagedigestmirrorsets.config.openshift.io"),
		rule("", "list", "imagetagmirrorsets.config.openshift.io"),
		rule("", "list", "machineconfigs.machineconfiguration.openshift.io"),
		rule("", "list", "nodes"),
		rule("", "list", "pinnedimagesets.machineconfiguration.openshift.io"),
		rule("openshift-config", "get", "secrets", "pull-secret"),
		rule("openshift-machine-api", "list", "machines.machine.openshift.io"),
		rule("openshift-machine-config-operator", "get", "secrets", "node-bootstrapper-token"),
		rule(gather.OperatorNamespace, "get", "configmaps", "trusted-ca", "windows-instances", "windows-machine-config"),
		rule(gather.OperatorNamespace, "get", "deployments.apps", "windows-machine-config-operator"),
		rule(gather.OperatorNamespace, "get", "secrets", "windows-machine-config-operator-tls"),
	}
}

// covers reports whether the right allows reading the object.
func covers(r testenv.Rule, o objects.Object) bool {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind})
	return r.APIGroups[0] == o.Group && r.Resources[0] == plural.Resource && (r.Namespace == "" || r.Namespace == o.Namespace)
}

var advice = regexp.MustCompile(`^add the rule (\{.*\}) to a (?:ClusterRole|Role in namespace (\S+)) that is bound to this user$`)

// missing returns the rules in the findings, in the order of rights. Every finding must have one of those.
func missing(t *testing.T, findings bundle.Findings) []testenv.Rule {
	t.Helper()
	var list []testenv.Rule
	for _, f := range findings {
		parts := advice.FindStringSubmatch(f.Fix)
		if f.Reason != reason.Forbidden || f.Severity != bundle.SeverityError || parts == nil {
			t.Errorf("not about a right: %+v", f)
			continue
		}
		r := testenv.Rule{Namespace: parts[2]}
		if err := yaml.UnmarshalStrict([]byte(parts[1]), &r.PolicyRule); err != nil {
			t.Errorf("%s: %v", f.Fix, err)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, compareRules)
	return list
}

func compareRules(a, b testenv.Rule) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Verbs[0], b.Verbs[0]),
		cmp.Compare(a.Resources[0], b.Resources[0]), cmp.Compare(a.APIGroups[0], b.APIGroups[0]),
	)
}

func TestUserWithoutRightsGetsAllFindings(t *testing.T) {
	server.Load(t, everyKind()...)
	_, set := gatherLive(t, server.User(t, "nobody"))
	if len(set.Objects) > 0 {
		t.Errorf("nobody could read %v", set.Objects)
	}
	if diff := gocmp.Diff(rights(), missing(t, set.Findings), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rights (-want +asked for):\n%s", diff)
	}
}

func TestRightsAreSufficientAndMinimal(t *testing.T) {
	server.Load(t, everyKind()...)
	want, all := gatherLive(t, server.Config(t))
	if len(all.Findings) > 0 {
		t.Fatalf("the administrator gets findings: %+v", all.Findings)
	}
	got, _ := gatherLive(t, server.User(t, "gatherer", rights()...))
	if diff := gocmp.Diff(want, got, sameInputs()); diff != "" {
		t.Errorf("with all rights (-administrator +user):\n%s", diff)
	}
	for i, lost := range rights() {
		name := strings.Join([]string{"lacks", lost.Verbs[0], lost.Resources[0], lost.APIGroups[0], lost.Namespace}, ".")
		t.Run(name, func(t *testing.T) {
			user := server.User(t, strings.Trim(name, "."), slices.Delete(rights(), i, i+1)...)
			_, set := gatherLive(t, user)
			if diff := gocmp.Diff([]testenv.Rule{lost}, missing(t, set.Findings), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rights (-lost +asked for):\n%s", diff)
			}
			rest := slices.DeleteFunc(slices.Clone(all.Objects), func(o objects.Object) bool { return covers(lost, o) })
			if len(rest) == len(all.Objects) {
				t.Error("the cluster holds nothing that the right is for")
			}
			if diff := gocmp.Diff(rest, set.Objects); diff != "" {
				t.Errorf("everything else (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterWithoutOptionalKinds(t *testing.T) {
	server.Without(t, "clusterimagepolicies.config.openshift.io", "imagedigestmirrorsets.config.openshift.io", "imagetagmirrorsets.config.openshift.io",
		"imagecontentsourcepolicies.operator.openshift.io", "pinnedimagesets.machineconfiguration.openshift.io", "machines.machine.openshift.io", "machinesets.machine.openshift.io")
	compareWithFiles(t, filepath.Join(goldens, "cases", "none"))
}

func TestPlainKubernetesReportsMissingKinds(t *testing.T) {
	server.Without(t)
	_, set := gatherLive(t, server.Config(t))
	var kinds []string
	for _, f := range set.Findings {
		kinds = append(kinds, f.Reason+" "+string(f.Severity)+" "+f.Object.Kind)
	}
	slices.Sort(kinds)
	want := []string{
		"KindNotServed error APIServer", "KindNotServed error ClusterVersion", "KindNotServed error ControllerConfig",
		"KindNotServed error Image", "KindNotServed error Infrastructure", "KindNotServed error MachineConfig",
		"KindNotServed error MachineConfigPool", "KindNotServed error Network", "KindNotServed error Network", "KindNotServed error Proxy",
	}
	if diff := gocmp.Diff(want, kinds); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestRemovedKindIsReportedToCachedClient: a client that cached the kind requests a path that no longer exists. That is not
// an object that is absent.
func TestRemovedKindIsReportedToCachedClient(t *testing.T) {
	reader := objects.NewClusterReader(testenv.NewClient(t, server.Config(t)))
	wants := []objects.Want{{Group: "config.openshift.io", Version: "v1", Kind: "Proxy", Names: []string{"cluster"}}}
	reasons := func() []string {
		set, err := reader.Read(t.Context(), wants)
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		for _, f := range set.Findings {
			list = append(list, f.Reason)
		}
		return list
	}
	if diff := gocmp.Diff([]string{}, reasons()); diff != "" {
		t.Errorf("an absent object (-want +got):\n%s", diff)
	}
	server.Without(t, "proxies.config.openshift.io")
	if diff := gocmp.Diff([]string{reason.KindNotServed}, reasons()); diff != "" {
		t.Errorf("a kind that is gone (-want +got):\n%s", diff)
	}
}

func TestUnreachableClusterIsAnError(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "https://127.0.0.1:1"}, client.Options{}) // it tries nothing again, unlike that of testenv
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gather.Gather(t.Context(), objects.NewClusterReader(c), gather.Options{Complete: true}); err == nil {
		t.Error("no error")
	}
}
