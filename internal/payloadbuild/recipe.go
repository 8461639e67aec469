package payloadbuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wmco/payload"
)

// Options say where things are and what is wanted.
type Options struct {
	// Root is the folder of the main module; Out is where the results go, bin in it.
	Root, Out string
	// Version is that of our own executables.
	Version string
	// Only are names of components and executables; empty is all of them.
	Only []string
	// Caches is a folder of its own for the caches of Go. Empty are the caches of the user.
	Caches string
	// Progress is told what is done, in lines for people.
	Progress io.Writer
}

// recipe is all that one executable is made of.
type recipe struct {
	payload.Executable
	component payload.Component
	// dir is the folder of the module that it is built in.
	dir string
	// release is that of Go, such as "go1.26.8".
	release string
	// key is a digest over everything that its bytes depend on.
	key string
}

// environment is what go build sees beside the machine's own: where modules come from stays the user's choice.
func (o Options) environment() []string {
	env := append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GODEBUG=", "GOTOOLCHAIN=local", "GOFIPS140=off")
	if o.Caches != "" {
		env = append(env, "GOCACHE="+filepath.Join(o.Caches, "build"), "GOMODCACHE="+filepath.Join(o.Caches, "modules"), "GOFLAGS=-modcacherw")
	}
	return env
}

// arguments are those of go for the executable.
func (r recipe) arguments(out string) []string {
	flags := "-s -w -buildid="
	for _, v := range r.component.Variables {
		flags += " -X " + v
	}
	return []string{"build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out, r.Package}
}

// recipes are those of the chosen executables, the longest to build first.
func (o Options) recipes(ctx context.Context) ([]recipe, error) {
	release, err := o.output(ctx, o.Root, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	var all []recipe
	for _, c := range payload.Components() {
		dir := filepath.Join(o.Root, "payload", c.Name)
		if c.Name == payload.Ours {
			dir = o.Root
			c.Version, c.Variables = o.Version, append(slices.Clone(c.Variables), payload.OurVersion+"="+o.Version)
		}
		for _, e := range c.Executables {
			e = payload.Find(e.Name)
			r := recipe{Executable: e, component: c, dir: dir, release: strings.TrimSpace(string(release))}
			if r.Version == "" {
				r.Version = o.Version
			}
			if r.key, err = o.key(ctx, r); err != nil {
				return nil, fmt.Errorf("preparing %s: %w", e.Name, err)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// chosen tells which recipes are wanted.
func (o Options) chosen(all []recipe) ([]recipe, error) {
	if len(o.Only) == 0 {
		return all, nil
	}
	for _, name := range o.Only {
		if known := names(); !slices.Contains(known, name) {
			return nil, fmt.Errorf("choosing what to build: there is no %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(r recipe) bool { return !slices.ContainsFunc(o.Only, r.called) }), nil
}

func (r recipe) called(name string) bool { return name == r.Name || name == r.Component }

// names are those of components and executables.
func names() []string {
	var list []string
	for _, c := range payload.Components() {
		list = append(list, c.Name)
		for _, e := range c.Executables {
			if e.Name != c.Name {
				list = append(list, e.Name)
			}
		}
	}
	return list
}

// packing names how executables are stored; another packing is another recipe.
const packing = "zstd best 8MiB 1"

func (o Options) key(ctx context.Context, r recipe) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n", r.release, packing, r.arguments(""))
	files := []string{filepath.Join(r.dir, "go.mod"), filepath.Join(r.dir, "go.sum")}
	if r.dir == o.Root {
		sources, err := o.sources(ctx, r.Package)
		if err != nil {
			return "", err
		}
		files = append(files, sources...)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", strings.TrimPrefix(path, o.Root), sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sources are the files of our module that go into a program.
func (o Options) sources(ctx context.Context, pkg string) ([]string, error) {
	const format = `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{range .SFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{end}}`
	out, err := o.output(ctx, o.Root, "list", "-deps", "-f", format, pkg)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// patience is how long an interrupted go may take to end.
const patience = 10 * time.Second

// output runs go in a folder. What it complains of is in the error.
func (o Options) output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, o.environment()
	// An interrupted go removes its own folders; what it started may outlive it, and is not waited for.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, patience
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s in %q: %w", args[0], dir, errors.Join(err, errors.New(reasons(complaints.String()))))
	}
	return out, nil
}

// reasons is what go complains of, without what it tells of its progress.
func reasons(told string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(told), "\n"), func(line string) bool { return strings.HasPrefix(line, "go: downloading ") })
	return strings.Join(lines, "\n")
}
