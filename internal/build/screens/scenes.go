package screens

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/internal/test/testenv/readonly"
)

// Scene is a picture: the command and what it is run on.
type Scene struct {
	// Name is that of the file.
	Name string
	// Command are the arguments of wmco, Status is how it ends.
	Command []string
	Status  int
	// Change is a file that the command names change.yaml, below the repository.
	Change string
	// Live is true for a command that asks a cluster, false for one that reads a must-gather.
	Live bool
	// Stage changes the fleet, whose nodes all have their bundle before.
	Stage func(ctx context.Context, f *Fleet) error
	// Show, if set, gives the command and what it prints in place of wmco.
	Show func(ctx context.Context, f *Fleet) (command, output string, err error)
}

// Files that commands name.
const (
	collected = "must-gather"
	change    = "change.yaml"
	// executables is a link to the payload whose bundles the nodes have.
	executables = "payload"
	proxy       = "../hack/demo-changes/proxy.yaml"
	setting     = "../hack/demo-changes/bad-setting.yaml"
)

// Scenes returns all pictures.
func Scenes() []Scene {
	return []Scene{
		{Name: "status", Command: []string{"status", "--from", collected}, Status: 1, Stage: oneHostMissing},
		{Name: "rollout", Command: []string{"status", "--from", collected}, Status: 1, Stage: canaryObserved},
		{Name: "node", Command: []string{"status", "win-1", "--from", collected}, Status: 1, Stage: canaryRolledBack},
		{Name: "stopped", Command: []string{"status", "--from", collected}, Status: 1, Stage: canaryRolledBack},
		{Name: "diff", Command: []string{
			"diff", "--from", "cluster", "--from", change, "--against", "cluster", "--payload", executables,
		}, Status: 1, Live: true, Change: proxy,
			Stage: func(context.Context, *Fleet) error { return nil }},
		{Name: "apply", Stage: func(context.Context, *Fleet) error { return nil }, Show: warned},
	}
}

// noon is when must-gathers were collected.
func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

// oneHostMissing: all nodes have their bundle, and a host does not become one.
func oneHostMissing(_ context.Context, f *Fleet) error {
	f.Say(metav1.Condition{
		Type: configure.HostsJoined, Reason: "LoginRefused", LastTransitionTime: metav1.NewTime(f.Ago(25 * time.Minute)),
		Message: "10.0.140.27: the host refuses the login as Administrator; fix: add the public key of the Secret cloud-private-key to its authorized keys",
	})
	return nil
}

// canaryObserved: a proxy is set, the first node has it, and the others wait.
func canaryObserved(ctx context.Context, f *Fleet) error {
	var err error
	if f.Bundles, err = f.Render(ctx, filepath.Join(f.golden, proxy)); err != nil {
		return err
	}
	f.Nodes[5].Annotations[published.PausedAnnotation] = "yes"
	f.Say(metav1.Condition{Type: status.RolledOut, Reason: "RollingOut", LastTransitionTime: metav1.NewTime(f.Ago(2 * time.Minute))})
	return f.Rolled(f.Nodes[0], plan.Turn{
		Impact: bundle.ImpactRestart, Canary: true, Begun: f.Ago(100 * time.Second), Ended: f.Ago(30 * time.Second),
	})
}

// canaryRolledBack: a setting does not work on the first node, and the others do not get it.
func canaryRolledBack(ctx context.Context, f *Fleet) error {
	wanted, err := f.Render(ctx, filepath.Join(f.golden, setting))
	if err != nil {
		return err
	}
	n := f.Nodes[0]
	f.Say(metav1.Condition{Type: status.RolledOut, Reason: "RolloutStopped", LastTransitionTime: metav1.NewTime(f.Ago(9 * time.Minute))})
	if err := f.Publish(n, wanted[n.Name], plan.Turn{Impact: bundle.ImpactRestart, Canary: true, Begun: f.Ago(12 * time.Minute)}); err != nil {
		return err
	}
	return f.Report(n, published.Report{
		State: published.StateRolledBack, Desired: wanted[n.Name].Bundle, Message: "service kubelet did not become healthy: it is stopped",
	}, f.Ago(9*time.Minute))
}

// errStatus means that a command ends in another way.
var errStatus = errors.New("another exit status")

// Print runs a scene with a program and returns the command line and what the program prints.
func (s Scene) Print(ctx context.Context, program, golden string) (command, output string, err error) {
	folder, err := os.MkdirTemp("", "wmco-screens-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a folder that stays does no harm
	now := noon()
	if s.Live {
		now = time.Now().UTC().Truncate(time.Second) // the command has no other time; it prints durations alone
	}
	f, err := NewFleet(ctx, golden, now)
	if err != nil {
		return "", "", err
	}
	if err := s.Stage(ctx, f); err != nil {
		return "", "", err
	}
	if s.Show != nil {
		return s.Show(ctx, f)
	}
	if err := os.Mkdir(filepath.Join(folder, collected), 0o700); err != nil {
		return "", "", err
	}
	if err := f.Write(filepath.Join(folder, collected)); err != nil {
		return "", "", err
	}
	payload, err := filepath.Abs(filepath.Join(golden, executables))
	if err == nil {
		err = os.Symlink(payload, filepath.Join(folder, executables))
	}
	if err != nil {
		return "", "", err
	}
	if s.Change != "" {
		text, err := os.ReadFile(filepath.Join(golden, s.Change))
		if err != nil {
			return "", "", err
		}
		if err := os.WriteFile(filepath.Join(folder, change), text, 0o600); err != nil {
			return "", "", err
		}
	}
	output, err = s.run(ctx, f, program, folder)
	return "wmco " + strings.Join(s.Command, " "), output, err
}

// run runs the program in a folder.
func (s Scene) run(ctx context.Context, f *Fleet, program, folder string) (string, error) {
	list, err := f.Objects()
	if err != nil {
		return "", err
	}
	server := httptest.NewServer(&readonly.API{Objects: list})
	defer server.Close()
	config := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, config); err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, s.Command...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &out, &errOut
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WMCO_")
	}), "KUBECONFIG="+config, "XDG_CONFIG_HOME="+folder, "TZ=UTC")
	err = cmd.Run()
	if ended := cmd.ProcessState; ended == nil || ended.ExitCode() != s.Status {
		return "", fmt.Errorf("running wmco %s: %w: %w\n%s%s", strings.Join(s.Command, " "), errStatus, err, out.String(), errOut.String())
	}
	return out.String(), nil
}
