package payloadbuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"wmco/payload"
)

// patched is the folder of the patched module. It stands in the build information, so it is the same wherever the build
// runs.
const patched = "./patched"

// patchedSource returns the folder to build an executable in: that of its go.mod, or a new one with a patched copy of
// its module. Go replaces no files below its module cache (go build -overlay).
func (o Options) patchedSource(ctx context.Context, r recipe, scratch string) (string, error) {
	if len(r.component.Patches) == 0 {
		return r.dir, nil
	}
	upstream, err := o.goOutput(ctx, r.dir, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", r.Module)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(scratch, patched), os.DirFS(strings.TrimSpace(string(upstream)))); err != nil {
		return "", err
	}
	for _, p := range r.component.Patches {
		if err := applyPatch(filepath.Join(scratch, patched), p); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if err := errors.Join(err, os.WriteFile(filepath.Join(scratch, name), data, modeFile)); err != nil {
			return "", err
		}
	}
	_, err = o.goOutput(ctx, scratch, "mod", "edit", "-replace="+r.Module+"="+patched)
	return scratch, err
}

// applyPatch changes one file of a module. The line must be there exactly once: the version that is pinned is the one
// that the patch was written for.
func applyPatch(module string, p payload.Patch) error {
	path := filepath.Join(module, filepath.FromSlash(p.File))
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines, found := strings.Split(string(data), "\n"), 0
	for i, line := range lines {
		if text := strings.TrimSpace(line); text == p.Line {
			lines[i] = strings.TrimSuffix(line, text) + p.With
			found++
		}
	}
	if found != 1 {
		return fmt.Errorf("changing %s: %d lines are %q, want 1", p.File, found, p.Line)
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), modeFile)
}
