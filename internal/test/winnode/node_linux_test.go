package winnode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
)

// module is the folder of this module.
const module = "../../.."

// exe is the path of the node agent, which no bundle contains.
const exe = `C:\wmco-node.exe`

// programs are the executables that tests write to hosts.
type programs struct{ node, runner, service, tool, sshd []byte }

var (
	building sync.Once
	built    programs
)

// build builds them once.
func build(t *testing.T) programs {
	t.Helper()
	building.Do(func() {
		built = programs{
			node:    winetest.Program(t, module, "./cmd/wmco-node", "main.wine=yes"),
			runner:  winetest.Program(t, module, "k8s.io/component-base/logs/kube-log-runner"),
			service: winetest.Program(t, module, "./internal/test/winnode/stub/service"),
			tool:    winetest.Program(t, module, "./internal/test/winnode/testdata/tool"),
			sshd:    winetest.Program(t, module, "./internal/test/winnode/testdata/sshd"),
		}
	})
	if built.sshd == nil {
		t.Fatal("the programs could not be built")
	}
	return built
}

// stand returns an executable that stands in for a service.
func stand(t *testing.T, b stub.Behaviour) string {
	t.Helper()
	data, err := stub.AttachBehaviour(build(t).service, b)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// machine is a Windows host with the node agent.
type machine struct{ *winetest.Prefix }

func newMachine(t *testing.T) machine {
	t.Helper()
	return machineOf(t, winetest.NewAlone(t))
}

func machineOf(t *testing.T, p *winetest.Prefix) machine {
	t.Helper()
	m := machine{p}
	m.WriteFile(t, exe, build(t).node)
	m.WriteFile(t, tool, build(t).tool)
	m.WriteFile(t, stub.Seen+`\.keep`, nil)
	m.keepRoots(t)
	return m
}

// tool is the path of testdata/tool.
const tool = `C:\tool.exe`

// keepRoots keeps the root store after a boot, see testdata/tool.
func (m machine) keepRoots(t *testing.T) {
	t.Helper()
	p := m.Start(t, winetest.Command{Path: tool, Args: []string{"hold"}})
	eventually(t, "the root store is kept", func() bool { return strings.Contains(p.Output(t), "holds") })
}

// eventually waits a minute: the computer is busy with other tests.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// wmco runs the node agent.
func (m machine) wmco(t *testing.T, stdin []byte, args ...string) winetest.Result {
	t.Helper()
	return m.Run(t, winetest.Command{Path: exe, Args: args, Stdin: string(stdin)})
}

func (m machine) observe(t *testing.T, n bundletest.Node, how ...string) protocol.Observation {
	t.Helper()
	r := m.wmco(t, n.Archive(t, nil), append([]string{"observe"}, how...)...)
	o, err := protocol.DecodeObservation([]byte(r.Stdout))
	if err != nil || r.ExitCode > 1 {
		t.Fatalf("observing: %v, %+v", err, r)
	}
	return o
}

// apply sends the contents that the host lacks, and returns the result and the exit status.
func (m machine) apply(t *testing.T, n bundletest.Node) (protocol.Event, int) {
	t.Helper()
	r := m.wmco(t, n.Archive(t, m.observe(t, n).Missing), "apply")
	return last(t, r), r.ExitCode
}

// last returns the result that the node agent printed.
func last(t *testing.T, r winetest.Result) protocol.Event {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	e, err := protocol.DecodeEvent([]byte(lines[len(lines)-1]))
	if err != nil || e.Event != protocol.EventResult {
		t.Fatalf("the last event: %v: %+v", err, r)
	}
	return e
}

// applied applies and fails the test if that fails.
func (m machine) applied(t *testing.T, n bundletest.Node) protocol.Event {
	t.Helper()
	e, status := m.apply(t, n)
	if status != 0 {
		t.Fatalf("status %d: %+v", status, e)
	}
	return e
}

// starts returns how often each stand-in was started.
func (m machine) starts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for name, lines := range m.argvs(t) {
		counts[name] = len(lines)
	}
	return counts
}

// argvs returns the arguments of each start, as JSON.
func (m machine) argvs(t *testing.T) map[string][]string {
	t.Helper()
	entries, err := os.ReadDir(m.Path(stub.Seen))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, e := range entries {
		if e.Name() != ".keep" {
			all[e.Name()] = strings.Split(strings.TrimSpace(string(m.ReadFile(t, stub.Seen+`\`+e.Name()))), "\n")
		}
	}
	return all
}

// unmanaged are the folders and files of Windows, of these tests and of logs.
var unmanaged = []string{"windows", "Program Files", "Program Files (x86)", "users", "ProgramData/Microsoft", "seen", "tool.exe", "wmco-node.exe", "tripwire.exe", "tripwire.reg", "var"}

// disk returns all other folders and files, with the description of each.
func (m machine) disk(t *testing.T, describe func(path string, info fs.FileInfo) string) map[string]string {
	t.Helper()
	root := m.Path(`C:\`)
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if slices.Contains(unmanaged, rel) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[rel] = describe(path, info)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(all, ".")
	return all
}

// contents returns the digests of all files.
func (m machine) contents(t *testing.T) map[string]string {
	t.Helper()
	return m.disk(t, func(path string, info fs.FileInfo) string {
		if info.IsDir() {
			return "folder"
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bundle.Of(data).Short()
	})
}

// writes returns the modification time and inode of each file, except the lock and the cache, on which nothing depends.
func (m machine) writes(t *testing.T) map[string]string {
	t.Helper()
	all := m.disk(t, func(_ string, info fs.FileInfo) string {
		if info.IsDir() {
			return "folder"
		}
		return fmt.Sprint(info.ModTime(), info.Sys().(*syscall.Stat_t).Ino)
	})
	delete(all, "ProgramData/wmco/lock")
	delete(all, "ProgramData/wmco/cache.json")
	return all
}

// without leaves out a folder and its contents.
func without(all map[string]string, folder string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(path, _ string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
	return all
}

// The registry keys of services, variables of the host and trusted roots.
const (
	keyServices  = `HKLM\SYSTEM\CurrentControlSet\Services`
	keyVariables = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`
	keyRoots     = `HKLM\SOFTWARE\Microsoft\SystemCertificates\Root\Certificates`
)

// registry returns what reg.exe prints for the keys.
func (m machine) registry(t *testing.T, keys ...string) string {
	t.Helper()
	text := ""
	for _, key := range keys {
		r := m.Run(t, winetest.Command{Path: "reg", Args: []string{"query", key, "/s"}})
		if r.ExitCode > 1 {
			t.Fatalf("%+v", r)
		}
		text += r.Stdout
	}
	return text
}

// settings returns the services, the variables of the host, and the names of the trusted roots in the registry.
func (m machine) settings(t *testing.T) string {
	t.Helper()
	text := m.registry(t, keyServices, keyVariables)
	for line := range strings.Lines(m.registry(t, keyRoots)) {
		if _, root, ok := strings.Cut(line, `\Root\Certificates\`); ok {
			text += "root " + root
		}
	}
	return text
}

// reg changes the registry.
func (m machine) reg(t *testing.T, args ...string) {
	t.Helper()
	if r := m.Run(t, winetest.Command{Path: "reg", Args: append(args, "/f")}); r.ExitCode != 0 {
		t.Fatalf("%q: %+v", args, r)
	}
}

// authority returns the certificate of a new CA, as DER.
func authority(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(der)
}
