package jointest_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/windowsnode/record"
)

const takeoverPage = "docs/takeover.md"

// page runs the commands of documents as an administrator does, in a folder of theirs. oc is kubectl.
type page struct {
	*world
	root, folder string
	// document is the page that is open.
	document string
}

// openPage returns a page with its programs. Without kubectl, the test is skipped.
func (w *world) openPage(document string) page {
	w.t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	must(w.t, err)
	kubectl, err := exec.LookPath(cmp.Or(os.Getenv("WMCO_KUBECTL"), filepath.Join(root, "bin", "tools", "kubectl")))
	if err != nil {
		kubectl, err = exec.LookPath("kubectl")
	}
	if err != nil {
		w.t.Skip("no kubectl: make kubectl-if-possible builds it, WMCO_KUBECTL is its path")
	}
	kubectl, err = filepath.Abs(kubectl)
	must(w.t, err)
	p := page{w, root, w.t.TempDir(), document}
	must(w.t, os.Symlink(filepath.Join(root, "docs"), filepath.Join(p.folder, "docs")))
	must(w.t, os.Symlink(kubectl, filepath.Join(p.folder, "oc")))
	program, err := programs.Go(w.t.Context(), "wmco/cmd/wmco")
	must(w.t, err)
	must(w.t, os.Symlink(program, filepath.Join(p.folder, "wmco")))
	return p
}

// open returns another page of the same documents.
func (p page) open(document string) page {
	p.document = document
	return p
}

// block returns the commands of a block below a heading, by a text that is in it.
func (p page) block(heading, contains string) string {
	p.t.Helper()
	for n := 1; ; n++ {
		text, err := exec.CommandContext(p.t.Context(), filepath.Join(p.root, "hack", "commands"), filepath.Join(p.root, p.document), heading, fmt.Sprint(n)).Output()
		if err != nil {
			p.t.Fatalf("%s, %q, has no commands with %q", p.document, heading, contains)
		}
		if strings.Contains(string(text), contains) {
			return string(text)
		}
	}
}

// run runs commands, and returns what they print. wmco status ends with 1 while a node is not as it should be.
func (p page) run(commands string) string {
	p.t.Helper()
	c := exec.CommandContext(p.t.Context(), "bash", "-euo", "pipefail", "-c", "wmco() { command wmco \"$@\" || [ $? = 1 ]; }\n"+commands)
	c.Dir = p.folder
	c.Env = append(os.Environ(), "PATH="+p.folder+":"+os.Getenv("PATH"), "KUBECONFIG="+server.ControlPlane(p.t).Kubeconfig, "HOME="+p.folder)
	out, err := c.CombinedOutput()
	p.t.Logf("%s\n%s", strings.TrimRight(commands, "\n"), out)
	if err != nil {
		p.t.Fatalf("the commands end with %v", err)
	}
	return string(out)
}

// lines runs the lines of a block from one number up to another one, the first is 0.
func (p page) lines(block string, from, to int) string {
	p.t.Helper()
	return p.run(strings.Join(strings.Split(block, "\n")[from:to], "\n"))
}

// TestThePageOfTheTakeoverIsFollowed: its commands adopt a node that was looked at, then the others; the existing operator has its nodes back; they are
// adopted again, and removed.
func TestThePageOfTheTakeoverIsFollowed(t *testing.T) {
	w := newWorld(t)
	p := w.openPage(takeoverPage)
	list := []existingNode{{name: "winworker-x7k2p", address: "192.0.2.15"}, {name: "win-4", address: "192.0.2.14", generation: "10.18"}}
	first, second := list[0], list[1]
	w.existingFleet(list...)
	t.Cleanup(func() {
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}}
		must(t, client.IgnoreNotFound(w.Delete(context.Background(), settings)))
	})
	stop := w.operate()
	waits := p.block("Nodes of the existing operator", "wmco status")
	eventually(t, "the nodes to wait", func() bool { return strings.Contains(p.lines(waits, 0, 1), "WaitingForAdoption") })
	eventually(t, "the condition", func() bool { return strings.Contains(p.lines(waits, 1, 2), "type: NodesAdopted") })

	look := p.block("In short", first.name)
	p.lines(look, 0, 1)
	eventually(t, "the plan", func() bool { return strings.Contains(p.lines(look, 1, 2), "its adoption has impact") })
	if !w.machines[first.name].hasExistingAgent() {
		t.Fatal("the host of a paused node was changed")
	}
	if text := p.lines(waits, 2, 3); !strings.Contains(text, "not changed: "+second.name+": configured by the existing operator") ||
		!strings.Contains(text, "not changed: "+first.name+": waiting for adoption, which applies the complete bundle: its adoption has impact") {
		t.Errorf("wmco diff prints\n%s", text)
	}
	p.lines(look, 2, 3)
	eventually(t, "the first node to be adopted", func() bool { return w.adopted(first.name, first.address) })
	if !w.machines[second.name].hasExistingAgent() {
		t.Fatal("a node was adopted that was not asked for")
	}
	all := p.block("In short", "adoption: Rollout")
	p.run(all)
	for _, n := range list {
		eventually(t, n.name+" to be adopted", func() bool { return w.adopted(n.name, n.address) })
	}
	// The canary of the next rollout is not observed for as long as in a cluster.
	quick := client.RawPatch(types.MergePatchType, []byte(`{"data":{"config.yaml":"adoption: Rollout\nrollout: {settle: 1s}\n"}}`))
	must(t, w.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}}, quick))
	stop()

	// The existing operator cleans up services by their description (pkg/daemon/cleanup/cleanup.go:224), and then configures the node.
	for _, n := range list {
		have, err := w.machines[n.name].Snapshot(t.Context())
		must(t, err)
		for _, s := range have.Services {
			if !strings.Contains(s.Description, "OpenShift managed") {
				t.Errorf("the existing operator would leave the service %s of %s: %q", s.Name, n.name, s.Description)
			}
		}
	}
	first.back, second.back = true, true
	w.becomeExisting(first, second)
	p.run(p.block("Back to the existing operator", "validatingadmissionpolicy"))
	p.run(p.block("Back to the existing operator", "custom-columns"))
	p.run(p.block("Back to the existing operator", published.ReportAnnotation))
	for _, n := range list {
		if have := w.node(n.name).Annotations; !published.WaitsForAdoption(have) {
			t.Errorf("%s does not wait for adoption: %v", n.name, have)
		}
		if r := w.recordOf(n.address); r.Node != "" {
			t.Errorf("the record of %s is left: %+v", n.address, r)
		}
	}
	server.Load(t, filepath.Join(p.root, "deploy", "admission", "operator.yaml")) // this operator is installed again
	w.operate()
	for _, n := range list {
		eventually(t, n.name+" to be adopted again", func() bool {
			return w.adopted(n.name, n.address) && w.recordOf(n.address).Origin == record.OriginAdopted
		})
		if w.machines[n.name].hasAgentCommand(n.furnishing(t).Command(bundle.AgentService)) {
			t.Errorf("%s has the existing agent", n.name)
		}
	}

	p.run(p.block("Removing this operator", "/data/"+first.address))
	eventually(t, "the end of the first Node", func() bool { return !w.hasNode(first.name) })
	p.run(p.block("Removing this operator", "/data/"+second.address))
	eventually(t, "the end of the last Node", func() bool { return !w.hasNode(second.name) })
}
