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
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// simulated is a simulated host.
type simulated interface {
	applier.Host
	Edit(context.Context, func(*simulation.State)) error
	StartProcess(context.Context, string) (simulation.Process, error)
	Restart(context.Context) error
}

// TestMemoryAndFolderHostsBehaveTheSame does the same random operations on a host in memory and on one in a folder.
func TestMemoryAndFolderHostsBehaveTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			memory, folder := hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch())), create(t, root)
			random := rand.New(rand.NewPCG(seed, 1))
			for n := range 150 {
				name, do := anyOperation(random)
				want, got := outcome(do(t.Context(), memory)), outcome(do(t.Context(), folder))
				if want != got {
					t.Fatalf("%d: %s returns %q in memory, %q in a folder", n, name, want, got)
				}
				snap, err := folder.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(memory.Snapshot(), snap, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%d: after %s, %q (-memory +folder):\n%s", n, name, want, diff)
				}
				if n%20 == 0 {
					folder = reopen(t, root)
				}
			}
		})
	}
}

// outcome returns the part of an error on which programs may branch.
func outcome(err error) string {
	var file *applier.FileError
	var service *applier.ServiceError
	var code simulation.SystemError
	switch {
	case err == nil:
		return "no error"
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

type operation func(context.Context, simulated) error

// anyOperation returns a random operation and its name.
func anyOperation(random *rand.Rand) (string, operation) {
	path, other := anyPath(random), anyPath(random)
	access := pick(random, bundle.AccessUsers, bundle.AccessAdmins)
	service := pick(random, "a", "B", "c")
	switch random.IntN(19) {
	case 0, 1, 2:
		text := strings.Repeat("x", random.IntN(50))
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
		config := anyConfig(random, service)
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
		script := anyScript(random, path)
		return fmt.Sprintf("script %+v", script), func(ctx context.Context, h simulated) error {
			return h.Edit(ctx, func(s *simulation.State) { s.Script = script })
		}
	case 15:
		return "move " + path + " " + other, func(ctx context.Context, h simulated) error { return h.Move(ctx, path, other) }
	case 16, 17:
		beside := plan.NewName(path)
		again := pick(random, path, `C:\`+strings.ToLower(path[3:]), `C:\`+strings.ToUpper(path[3:]))
		return "run " + beside + " and write " + again, func(ctx context.Context, h simulated) error {
			written := h.Write(ctx, beside, access, strings.NewReader("program"))
			_, err := h.StartProcess(ctx, beside)
			return errors.Join(written, err, h.Write(ctx, again, access, strings.NewReader("new")))
		}
	case 14:
		return "boot", func(ctx context.Context, h simulated) error { return h.Restart(ctx) }
	}
	setting := anySetting(random)
	return fmt.Sprintf("set %+v", setting), func(ctx context.Context, h simulated) error {
		return errors.Join(h.Set(ctx, setting), h.Probe(ctx, bundle.Probe{Kind: bundle.ProbeTCP, Target: "target"}))
	}
}

func pick[E any](random *rand.Rand, from ...E) E { return from[random.IntN(len(from))] }

func anyPath(random *rand.Rand) string {
	path := `C:\` + pick(random, "k", "K", "a.exe", "z")
	for range random.IntN(3) {
		path += `\` + pick(random, "a.exe", "A.EXE", "b", "c d", "größe")
	}
	return pick(random, path, path, path, plan.NewName(path), plan.AsideName(path, "1"))
}

func anyConfig(random *rand.Rand, name string) plan.ServiceConfig {
	c := plan.ServiceConfig{
		Name:        name,
		Start:       pick(random, bundle.StartAuto, bundle.StartAuto, plan.StartManual, plan.StartDisabled),
		CommandLine: bundle.CommandLine([]string{anyPath(random), "x y", anyPath(random)}),
	}
	for range random.IntN(3) {
		c.Dependencies = append(c.Dependencies, pick(random, "A", "b", "c", "d"))
	}
	if random.IntN(2) == 0 {
		c.Environment = []string{"A=" + fmt.Sprint(random.IntN(9))}
	}
	return c
}

func anyScript(random *rand.Rand, path string) simulation.Script {
	var s simulation.Script
	switch random.IntN(6) {
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

func anySetting(random *rand.Rand) plan.Setting {
	x := pick(random,
		plan.Setting{Kind: bundle.KindVariable, Name: pick(random, "A", "a", "B"), Value: pick(random, "", "%x%")},
		plan.Setting{Kind: bundle.KindRoute, Name: "169.254.169.254/32", Value: pick(random, bundle.ViaDefault, "10.0.0.9", "no address")},
		plan.Setting{Kind: bundle.KindAuthorizedKey, Name: selftest.KeyFingerprint, Value: pick(random, selftest.KeyLine, "ssh-ed25519 AAAA")},
		plan.Setting{Kind: bundle.KindFeature, Name: "Containers"},
		plan.Setting{Kind: bundle.KindFirewall, Name: "kubelet", Value: pick(random, "TCP/10250", "UDP/1", "?")},
		plan.Setting{Kind: bundle.KindExclusion, Name: `C:\k\a.exe`},
		plan.Setting{Kind: bundle.KindEndpoint, Name: "VIPEndpoint", Value: "none/1"},
		plan.Setting{Kind: bundle.KindNetwork, Name: "none"},
		plan.Setting{Kind: bundle.KindHostName, Name: bundle.Computer, Value: pick(random, "winhost", "other")},
		plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of([]byte("a"))), Value: pick(random, "a", "b")},
	)
	x.Present = random.IntN(3) > 0
	return x
}
