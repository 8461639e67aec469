//go:build unix

package folderhost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier"
	"wmco/applier/hosttest"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// simulated is a host that is simulated.
type simulated interface {
	applier.Host
	Edit(context.Context, func(*simulation.State)) error
	StartProcess(context.Context, string) (simulation.Process, error)
	Restart(context.Context) error
}

// TestBothSimulationsAreTheSameMachine lets chance do the same to a host in memory and to one in a folder.
func TestBothSimulationsAreTheSameMachine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			memory, folder := hosttest.NewMemory(hosttest.Facts(), hosttest.NewClock(hosttest.Epoch())), create(t, root)
			chance := rand.New(rand.NewPCG(seed, 1))
			for n := range 150 {
				says, do := anything(chance)
				want, got := outcome(do(t.Context(), memory)), outcome(do(t.Context(), folder))
				if want != got {
					t.Fatalf("%d: %s gives %q in memory, %q in a folder", n, says, want, got)
				}
				snap, err := folder.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(memory.Snapshot(), snap, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%d: after %s, %q (-memory +folder):\n%s", n, says, want, diff)
				}
				if n%20 == 0 {
					folder = reopen(t, root)
				}
			}
		})
	}
}

// outcome is what a program may branch on.
func outcome(err error) string {
	var file *applier.FileError
	var service *applier.ServiceError
	var code simulation.SystemError
	switch {
	case err == nil:
		return "nothing wrong"
	case errors.As(err, &file):
		return string(file.Reason)
	case errors.As(err, &service) && errors.As(err, &code):
		return fmt.Sprint(service.Doing, " ", int(code))
	case errors.Is(err, applier.ErrNoSetting):
		return "no setting"
	case errors.Is(err, simulation.ErrSilent):
		return "silent"
	case errors.As(err, &code):
		return fmt.Sprint("code ", int(code))
	}
	return "other: " + err.Error()
}

type doing func(context.Context, simulated) error

// anything is one operation, and what it is called.
func anything(chance *rand.Rand) (string, doing) {
	path, other := anyPath(chance), anyPath(chance)
	access := pick(chance, bundle.AccessUsers, bundle.AccessAdmins)
	service := pick(chance, "a", "B", "c")
	switch chance.IntN(16) {
	case 0, 1, 2:
		text := strings.Repeat("x", chance.IntN(50))
		return "write " + path, func(ctx context.Context, h simulated) error {
			return h.Write(ctx, path, access, strings.NewReader(text))
		}
	case 3, 4:
		return "make " + path, func(ctx context.Context, h simulated) error { return h.MakeDirectory(ctx, path, access) }
	case 5:
		return "link " + path + " " + other, func(ctx context.Context, h simulated) error { return h.Link(ctx, path, other) }
	case 6, 7:
		return "remove " + path, func(ctx context.Context, h simulated) error { return h.Remove(ctx, path) }
	case 8:
		return "empty " + path + " " + other, func(ctx context.Context, h simulated) error { return h.CopyTruncate(ctx, path, other) }
	case 9:
		config := anyConfig(chance, service)
		return fmt.Sprintf("put %+v", config), func(ctx context.Context, h simulated) error { return h.PutService(ctx, config) }
	case 10:
		return "start " + service, func(ctx context.Context, h simulated) error { return h.StartService(ctx, service) }
	case 11:
		return "stop or delete " + service, func(ctx context.Context, h simulated) error {
			return errors.Join(h.StopService(ctx, service), h.DeleteService(ctx, service))
		}
	case 12:
		return "run " + path, func(ctx context.Context, h simulated) error {
			_, err := h.StartProcess(ctx, path)
			return err
		}
	case 13:
		script := anyScript(chance, path)
		return fmt.Sprintf("script %+v", script), func(ctx context.Context, h simulated) error {
			return h.Edit(ctx, func(s *simulation.State) { s.Script = script })
		}
	case 14:
		return "boot", func(ctx context.Context, h simulated) error { return h.Restart(ctx) }
	}
	setting := anySetting(chance)
	return fmt.Sprintf("set %+v", setting), func(ctx context.Context, h simulated) error {
		return errors.Join(h.Set(ctx, setting), h.Probe(ctx, bundle.Probe{Kind: bundle.ProbeTCP, Target: "target"}))
	}
}

func pick[E any](chance *rand.Rand, from ...E) E { return from[chance.IntN(len(from))] }

func anyPath(chance *rand.Rand) string {
	path := `C:\` + pick(chance, "k", "K", "a.exe", "z")
	for range chance.IntN(3) {
		path += `\` + pick(chance, "a.exe", "A.EXE", "b", "c d", "größe")
	}
	return pick(chance, path, path, path, applier.NewName(path), applier.AsideName(path, "1"))
}

func anyConfig(chance *rand.Rand, name string) applier.ServiceConfig {
	c := applier.ServiceConfig{
		Name:        name,
		Start:       pick(chance, bundle.StartAuto, bundle.StartAuto, applier.StartManual, applier.StartDisabled),
		CommandLine: bundle.CommandLine([]string{anyPath(chance), "x y", anyPath(chance)}),
	}
	for range chance.IntN(3) {
		c.Dependencies = append(c.Dependencies, pick(chance, "A", "b", "c", "d"))
	}
	if chance.IntN(2) == 0 {
		c.Environment = []string{"A=" + fmt.Sprint(chance.IntN(9))}
	}
	return c
}

func anyScript(chance *rand.Rand, path string) simulation.Script {
	var s simulation.Script
	switch chance.IntN(6) {
	case 0:
		s.Locked = []string{path}
	case 1:
		s.Denied = []string{path}
	case 2:
		s.Full = []string{path}
	case 3:
		s.Services = map[string]simulation.Behaviour{"a": {Start: simulation.StartHangs}, "b": {Held: true, Child: path}}
	case 4:
		s.Services = map[string]simulation.Behaviour{
			"a": {After: simulation.AfterCrashes, Answers: []string{"target"}}, "c": {HealthyAfter: 1, Answers: []string{"target"}},
		}
	}
	return s
}

func anySetting(chance *rand.Rand) applier.Setting {
	x := pick(chance,
		applier.Setting{Kind: bundle.KindVariable, Name: pick(chance, "A", "a", "B"), Value: pick(chance, "", "%x%")},
		applier.Setting{Kind: bundle.KindRoute, Name: "169.254.169.254/32", Value: pick(chance, bundle.ViaDefault, "10.0.0.9", "no address")},
		applier.Setting{Kind: bundle.KindFeature, Name: "Containers"},
		applier.Setting{Kind: bundle.KindFirewall, Name: "kubelet", Value: pick(chance, "TCP/10250", "UDP/1", "?")},
		applier.Setting{Kind: bundle.KindExclusion, Name: `C:\k\a.exe`},
		applier.Setting{Kind: bundle.KindEndpoint, Name: "VIPEndpoint", Value: "none/1"},
		applier.Setting{Kind: bundle.KindNetwork, Name: "none"},
		applier.Setting{Kind: bundle.KindHostName, Name: bundle.Computer, Value: pick(chance, "winhost", "other")},
		applier.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of([]byte("a"))), Value: pick(chance, "a", "b")},
	)
	x.Present = chance.IntN(3) > 0
	return x
}
