package winetest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// winhost is the package of the Windows host, in this module, and thisMachine the one that tests its contract.
const (
	module      = "../../.."
	winhost     = "./applier/winhost"
	thisMachine = "./applier/selftest/thismachine"
)

// winhostBoots is the environment variable that names the host to the tests of winhost across a boot.
const winhostBoots = "WMCO_TEST_BOOT"

// TestWinhostOnWindows runs the tests of winhost and of the packages below it, the contract of hosts among them. It sets
// tripwires, creates the links that only Linux can create, and checks what only Linux can see.
func TestWinhostOnWindows(t *testing.T) {
	t.Parallel()
	p := New(t)
	p.Tripwires(t)
	p.Build(t, `C:\k\kube-log-runner.exe`, module, "k8s.io/component-base/logs/kube-log-runner")
	makeLinks(t, p)
	results := map[string]string{}
	for _, pkg := range append(tested(t, winhost+"/..."), tested(t, thisMachine)...) {
		for name, result := range p.Test(t, module, pkg) {
			results[path.Base(pkg)+"."+name] = result
		}
	}
	checkSkips(t, results)
	if tripped := p.Tripped(t); tripped != nil {
		t.Errorf("forbidden programs were run: %q", tripped)
	}
	checkModes(t, p)
	checkLinks(t, p)
}

// tested returns the packages with tests for Windows.
func tested(t *testing.T, pattern string) []string {
	t.Helper()
	return strings.Fields(runGo(t, module, pattern, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"))
}

// packagesVariable has TestThePackagesOfTheAgentOnWindows run the two packages that take minutes too.
const packagesVariable = "WMCO_WINE_PACKAGES"

// TestThePackagesOfTheAgentOnWindows runs the tests of what the node agent is made of, as hack/windows-steps does on Windows. Those that need a
// control plane or a simulated host skip there.
func TestThePackagesOfTheAgentOnWindows(t *testing.T) {
	t.Parallel()
	p := New(t)
	for _, pattern := range []string{"./bundle/...", "./preflight", "./applier/...", "./internal/nodecli"} {
		for _, pkg := range tested(t, pattern) {
			if strings.HasPrefix(pkg, "wmco/applier/winhost") || pkg == "wmco/applier/selftest/thismachine" {
				continue // TestWinhostOnWindows runs them
			}
			if pkg == "wmco/bundle/reason" {
				continue // its tests read the sources of other packages, which C:\k has not
			}
			t.Run(pkg, func(t *testing.T) {
				if slices.Contains([]string{"wmco/applier", "wmco/applier/agent"}, pkg) && os.Getenv(packagesVariable) == "" {
					t.Skip("minutes: " + packagesVariable + "=1, as ci-full has it")
				}
				copyTestdata(t, p, filepath.Join(module, strings.TrimPrefix(pkg, "wmco/")))
				counts := map[string]int{}
				for _, result := range p.Test(t, module, pkg) {
					counts[result]++
				}
				if counts["pass"] == 0 {
					t.Error("no test has passed")
				}
				t.Log(counts)
			})
		}
	}
}

// copyTestdata gives the tests of a package, which run in C:\k, their files.
func copyTestdata(t *testing.T, p *Prefix, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p.WriteFile(t, `C:\k\testdata\`+filepath.Base(file), data)
	}
}

// checkSkips demands that no test failed, and that none was skipped except clauses of the contract and TestBoot, which
// TestWinhostAcrossABoot runs.
func checkSkips(t *testing.T, results map[string]string) {
	t.Helper()
	passed := 0
	for name, result := range results {
		switch {
		case result == "pass":
			passed++
		case result == "fail":
			t.Errorf("%s: %s", name, result)
		case !strings.HasPrefix(name, "thismachine.TestContract/") && name != "winhost.TestBoot":
			t.Errorf("%s: %s", name, result)
		}
	}
	if passed < 50 {
		t.Errorf("only %d tests passed", passed)
	}
	t.Logf("%d tests passed", passed)
}

// makeLinks creates what TestLinks reads.
func makeLinks(t *testing.T, p *Prefix) {
	t.Helper()
	p.WriteFile(t, `C:\wmco-links\folder\file`, []byte("text"))
	for name, target := range map[string]string{"link": "folder", "to-file": "folder/file"} {
		link := p.Path(`C:\wmco-links\` + name)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(link, user, user); err != nil {
			t.Fatal(err)
		}
	}
}

func checkLinks(t *testing.T, p *Prefix) {
	t.Helper()
	if text := string(p.ReadFile(t, `C:\wmco-links\folder\file`)); text != "text" {
		t.Errorf("a file behind a link holds %q", text)
	}
	if info, err := os.Lstat(p.Path(`C:\wmco-links\link`)); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is missing: %v, %v", info, err)
	}
}

// checkModes checks the modes that Wine gave the files of TestModes: whether others may read. For Wine, the group Users of
// Windows is not among the others.
func checkModes(t *testing.T, p *Prefix) {
	t.Helper()
	got := map[string]bool{}
	for _, name := range []string{"file-admins", "folder-admins", "file-plain"} {
		info, err := os.Stat(p.Path(`C:\wmco-modes\` + name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = info.Mode().Perm()&7 != 0
	}
	want := map[string]bool{"file-admins": false, "folder-admins": false, "file-plain": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whether others may read (-want +got):\n%s", diff)
	}
}

// TestWinhostAcrossABoot boots several hosts in parallel, each with its own services, variables and certificates.
func TestWinhostAcrossABoot(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "winhost.test.exe")
	runGo(t, module, winhost, "test", "-c", "-o", exe)
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := New(t)
			p.WriteFile(t, `C:\k\winhost.test.exe`, program)
			half(t, p, "before", i)
			time.Sleep(time.Second) // a boot time has whole seconds, and Wine may boot in less
			p.Reboot(t)
			half(t, p, "after", i)
		})
	}
}

// half runs one half of TestBoot.
func half(t *testing.T, p *Prefix, half string, machine int) {
	t.Helper()
	r := p.Run(t, Command{
		Path: `C:\k\winhost.test.exe`,
		Args: []string{"-test.v", "-test.run=^TestBoot$/^" + half + "$"},
		Dir:  `C:\k`,
		Env:  []string{fmt.Sprintf("%s=%d", winhostBoots, machine), "WINEDEBUG=-all,fixme+advapi"},
	})
	if r.ExitCode != 0 || !strings.Contains(r.Stdout, "--- PASS: TestBoot/"+half) {
		t.Errorf("%s the boot: %+v", half, r)
	}
	const asked = `fixme:advapi:InitiateSystemShutdownExW (null) L"wmco test" 5 1 1 0x80020004`
	if half == "before" && !strings.Contains(r.Stderr, asked) {
		t.Errorf("no restart was requested: %s", r.Stderr)
	}
}

// tripwireExit is the exit code of testdata/tripwire.
const tripwireExit = 86

func TestTripwiresTrip(t *testing.T) {
	t.Parallel()
	p := New(t)
	p.Tripwires(t)
	if tripped := p.Tripped(t); tripped != nil {
		t.Fatalf("tripped before anything ran: %q", tripped)
	}
	var want []string
	for _, program := range traps {
		if r := p.Run(t, Command{Path: program, Args: []string{"a b"}}); r.ExitCode != tripwireExit {
			t.Errorf("%s ended with %+v", program, r)
		}
		want = append(want, fmt.Sprintf("%q", []string{program, "a b"}))
	}
	if diff := cmp.Diff(want, p.Tripped(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
