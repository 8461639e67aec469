package payloadbuild

import (
	"context"
	"encoding/json"
	"fmt"
	"go/version"
	"path/filepath"
	"slices"
	"strings"

	"wmco/payload"
)

// goMod is the output of `go mod edit -json`.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		New struct{ Path, Version string }
	}
	Godebug []struct{ Key, Value string }
	Tool    []struct{ Path string }
}

func (o Options) readMod(ctx context.Context, path string) (goMod, error) {
	data, err := o.goOutput(ctx, o.Root, "mod", "edit", "-json", path)
	if err != nil {
		return goMod{}, err
	}
	var m goMod
	if err := json.Unmarshal(data, &m); err != nil {
		return goMod{}, fmt.Errorf("reading %q: %w", path, err)
	}
	return m, nil
}

// debugSettings returns the settings of GODEBUG as name=value.
func (m goMod) debugSettings() []string {
	var list []string
	for _, d := range m.Godebug {
		list = append(list, d.Key+"="+d.Value)
	}
	return list
}

// checkDebug compares the table's GODEBUG settings of a component with those of upstream's go.mod: its godebug lines,
// and the defaults of its go line if that is older than ours. The go command reads GODEBUG from the main module only
// (https://go.dev/doc/godebug), so our go.mod must repeat them.
func (o Options) checkDebug(ctx context.Context, c payload.Component) error {
	dir := filepath.Join(o.Root, "payload", c.Name)
	path, err := o.goOutput(ctx, dir, "list", "-mod=readonly", "-m", "-f", "{{.GoMod}}", c.Module)
	if err != nil {
		return err
	}
	upstream, err := o.readMod(ctx, strings.TrimSpace(string(path)))
	if err != nil {
		return err
	}
	ours, err := o.readMod(ctx, filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if want := inheritedDebug(upstream, ours); !slices.Equal(want, c.Debug) {
		return fmt.Errorf("checking %s: its go.mod sets GODEBUG %q, but the table has %q", c.Name, want, c.Debug)
	}
	return nil
}

// inheritedDebug returns the settings of upstream that our go.mod must repeat.
func inheritedDebug(upstream, ours goMod) []string {
	const byRelease = "default=go"
	want := upstream.debugSettings()
	isDefault := func(d string) bool { return strings.HasPrefix(d, byRelease) }
	if !slices.ContainsFunc(want, isDefault) {
		want = append(want, byRelease+upstream.Go)
	}
	for i, d := range want {
		if isDefault(d) {
			// default=go1.24.6 equals default=go1.24.
			want[i] = byRelease + minorOf(strings.TrimPrefix(d, byRelease))
		}
	}
	want = slices.DeleteFunc(want, func(d string) bool { return d == byRelease+minorOf(ours.Go) })
	slices.Sort(want)
	return want
}

// minorOf returns 1.24 for 1.24.6.
func minorOf(release string) string { return strings.TrimPrefix(version.Lang("go"+release), "go") }
