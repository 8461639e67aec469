// Package distribution runs the registry program of github.com/distribution/distribution for tests, as Debian's
// docker-registry. It listens on the loopback interface alone and ends with the test.
package distribution

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Name is that of the program in PATH.
const Name = "docker-registry"

// Options are those of a registry. Zero values have no effect.
type Options struct {
	// Folder has the images; several registries may share it. Empty is a new one.
	Folder string
	// Auth is the section auth of the configuration, as YAML in one line.
	Auth string
	// Certificate and Key are PEM. Without them the registry speaks plain HTTP.
	Certificate, Key []byte
}

// Registry is a program that runs, or was stopped.
type Registry struct {
	// Address is HOST:PORT. It stays the same after Restart.
	Address string
	// Folder has the images.
	Folder string

	t       testing.TB
	options Options
	files   string
	command *exec.Cmd
	cancel  context.CancelFunc
	// written is what processes that have ended have written.
	written int64
}

// NeedRegistry skips a test where there is no such program.
func NeedRegistry(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(Name); err != nil {
		t.Skip("skipped: needs " + Name + " (Debian package docker-registry; make setup)")
	}
}

// Start starts a registry on a free port.
func Start(t testing.TB, o Options) *Registry {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	r := &Registry{Address: "127.0.0.1:0", Folder: o.Folder, t: t, options: o, files: t.TempDir()}
	t.Cleanup(func() {
		if r.command != nil {
			r.Stop()
		}
	})
	r.Restart()
	return r
}

// Restart starts a registry that was stopped, at its address.
func (r *Registry) Restart() {
	r.t.Helper()
	file := filepath.Join(r.files, "config.yml")
	r.must(os.WriteFile(file, []byte(r.config()), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, Name, "serve", file)
	command.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	stderr, err := command.StderrPipe()
	r.must(err)
	r.must(command.Start())
	r.command, r.cancel = command, cancel
	var answer []string
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			r.Address = match[1]
			return
		}
		answer = append(answer, lines.Text())
	}
	r.t.Fatalf("%s did not start:\n%s", Name, strings.Join(answer, "\n"))
}

var listening = regexp.MustCompile(`listening on (127\.0\.0\.\d+:\d+)`)

// config returns the configuration (distribution.github.io/distribution/about/configuration).
func (r *Registry) config() string {
	r.t.Helper()
	text := fmt.Sprintf("version: 0.1\nlog: {level: info, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %q}}\n", r.Folder)
	if r.options.Auth != "" {
		text += "auth: {" + r.options.Auth + "}\n"
	}
	if r.options.Certificate == nil {
		return text + fmt.Sprintf("http: {addr: %q}\n", r.Address)
	}
	certificate, key := filepath.Join(r.files, "tls.crt"), filepath.Join(r.files, "tls.key")
	r.must(os.WriteFile(certificate, r.options.Certificate, 0o600))
	r.must(os.WriteFile(key, r.options.Key, 0o600))
	return text + fmt.Sprintf("http: {addr: %q, tls: {certificate: %q, key: %q}}\n", r.Address, certificate, key)
}

// Stop kills the program: its connections end in the middle of what it sends.
func (r *Registry) Stop() {
	r.t.Helper()
	r.written = r.Written()
	r.cancel()
	_ = r.command.Wait() // it was killed
	r.command = nil
}

// Written returns how many bytes the program has written, to clients, to its folder and to its log, since Start.
func (r *Registry) Written() int64 {
	r.t.Helper()
	if r.command == nil {
		return r.written
	}
	n, err := WrittenBy(r.command.Process.Pid)
	r.must(err)
	return r.written + n
}

// WrittenBy returns how many bytes a process has written to files and connections, without those that it only read
// (proc_pid_io(5), wchar).
func WrittenBy(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	var n int64
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "wchar:"); ok {
			_, err := fmt.Sscan(value, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("process %d has no count of what it wrote", pid)
}

func (r *Registry) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
