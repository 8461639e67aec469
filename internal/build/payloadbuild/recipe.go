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

// Options are the folders and the selection of a build.
type Options struct {
	// Root is the folder of the main module. Out is the folder of the results, bin in Root by default.
	Root, Out string
	// Version is the version of the executables of this module.
	Version string
	// Sources is the URL below which the files of the release can be read; empty if it is no release.
	Sources string
	// Only are names of components and executables. Empty means all.
	Only []string
	// Caches is a folder for the caches of Go. If it is empty, those of the user are used.
	Caches string
	// Progress gets lines about the progress, for people.
	Progress io.Writer
}

// recipe is everything that one executable depends on.
type recipe struct {
	payload.Executable
	component payload.Component
	// dir is the folder of the module that it is built in.
	dir string
	// release is that of Go, such as "go1.26.8".
	release string
	// key is the digest of the recipe.
	key string
}

// goEnvironment returns the environment of go build. GOPROXY and similar settings of the user stay.
func (o Options) goEnvironment() []string {
	env := append(
		os.Environ(), "GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=",
		"GOWORK=off", "GODEBUG=", "GOTOOLCHAIN=local", "GOFIPS140=off",
	)
	if o.Caches != "" {
		env = append(env, "GOCACHE="+filepath.Join(o.Caches, "build"), "GOMODCACHE="+filepath.Join(o.Caches, "modules"), "GOFLAGS=-modcacherw")
	}
	return env
}

// goArguments returns the arguments of go for the executable.
func (r recipe) goArguments(out string) []string {
	flags := "-s -w -buildid="
	for _, v := range r.component.Variables {
		flags += " -X " + v
	}
	args := []string{"build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out}
	if len(r.component.Tags) > 0 {
		args = append(args, "-tags", strings.Join(r.component.Tags, ","))
	}
	return append(args, r.Package)
}

// readRecipes returns the recipes of all executables, the slowest to build first.
func (o Options) readRecipes(ctx context.Context) ([]recipe, error) {
	release, err := o.goOutput(ctx, o.Root, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	var all []recipe
	for _, c := range payload.Components() {
		dir := filepath.Join(o.Root, "payload", c.Name)
		if c.Name == payload.Ours {
			dir = o.Root
			c.Version, c.Variables = o.Version, append(slices.Clone(c.Variables), payload.OurVersion+"="+o.Version, payload.OurSources+"="+o.Sources)
		}
		for _, e := range c.Executables {
			e = payload.Find(e.Name)
			r := recipe{Executable: e, component: c, dir: dir, release: strings.TrimSpace(string(release))}
			if r.Version == "" {
				r.Version = o.Version
			}
			if r.key, err = o.recipeKey(ctx, r); err != nil {
				return nil, fmt.Errorf("preparing %s: %w", e.Name, err)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// chooseRecipes returns the selected recipes.
func (o Options) chooseRecipes(all []recipe) ([]recipe, error) {
	if len(o.Only) == 0 {
		return all, nil
	}
	for _, name := range o.Only {
		if known := recipeNames(); !slices.Contains(known, name) {
			return nil, fmt.Errorf("selecting executables: unknown name %q; use %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(r recipe) bool { return !slices.ContainsFunc(o.Only, r.isCalled) }), nil
}

func (r recipe) isCalled(name string) bool { return name == r.Name || name == r.Component }

// recipeNames returns the names of components and executables.
func recipeNames() []string {
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

// packing describes how executables are compressed. It is part of the recipe.
const packing = "zstd best 8MiB 1"

func (o Options) recipeKey(ctx context.Context, r recipe) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n%q\n", r.release, packing, r.goArguments(""), r.component.Patches)
	files := []string{filepath.Join(r.dir, "go.mod"), filepath.Join(r.dir, "go.sum")}
	if r.component.IsOurs() {
		sources, err := o.hashSources(ctx, r)
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

// hashSources returns the files of this repository that a program is built from. Modules of others may be missing: the build reports them.
func (o Options) hashSources(ctx context.Context, r recipe) ([]string, error) {
	const format = `{{if and .Module (or .Module.Main (eq .Module.Path "wmco"))}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{range .SFiles}}{{$d}}/{{.}}` + "\n" + `{{end}}{{end}}`
	out, err := o.goOutput(ctx, r.dir, "list", "-e", "-tags", strings.Join(r.component.Tags, ","), "-deps", "-f", format, r.Package)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// patience is how long an interrupted go command may take to exit.
const patience = 10 * time.Second

// goOutput runs go in a folder and returns its stdout. The error has its stderr.
func (o Options) goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, o.goEnvironment()
	// An interrupted go removes its temporary folders. Processes that it started may live on and are not waited for.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, patience
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s in %q: %w", args[0], dir, errors.Join(err, errors.New(withoutDownloads(stderr.String()))))
	}
	return out, nil
}

// withoutDownloads returns the messages of go without its lines about downloads.
func withoutDownloads(stderr string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stderr), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	return strings.Join(lines, "\n")
}
