package consumers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// checkContainerd loads the configuration with containerd itself and reads the values in effect. Its loader accepts
// almost everything, so three things must hold: no warning (misspelt keys), no unknown plugin (it silently keeps their
// tables), and every value in the file is in effect.
func checkContainerd(ctx context.Context, contents []byte, o Options) error {
	if o.Containerd == "" {
		return fmt.Errorf("%w: needs WMCO_CONTAINERD, the path of a containerd for this system (make bin/tools/containerd)", ErrUnavailable)
	}
	var written map[string]any
	if err := toml.Unmarshal(contents, &written); err != nil {
		return err
	}
	file := filepath.Join(o.Scratch, "containerd.toml")
	if err := os.WriteFile(file, contents, 0o600); err != nil {
		return err
	}
	effective, err := containerdConfig(ctx, o.Containerd, "--config", file, "config", "dump")
	if err != nil {
		return err
	}
	defaults, err := containerdConfig(ctx, o.Containerd, "config", "default")
	if err != nil {
		return err
	}
	return errors.Join(unknownPlugins(written, defaults), differences(nil, written, effective))
}

// containerdConfig runs containerd and reads the configuration that it prints; any log line is an error.
func containerdConfig(ctx context.Context, program string, args ...string) (map[string]any, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil || stderr.Len() > 0 {
		return nil, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	var config map[string]any
	if err := toml.Unmarshal(stdout.Bytes(), &config); err != nil {
		return nil, fmt.Errorf("reading containerd's output: %w", err)
	}
	return config, nil
}

// windowsPlugins have settings and exist in the Windows build only, so the Linux build that runs here lists them
// nowhere.
var windowsPlugins = []string{}

// unknownPlugins returns an error for every configured plugin that containerd's default configuration lacks.
func unknownPlugins(written, defaults map[string]any) error {
	configured, _ := written["plugins"].(map[string]any)
	known, _ := defaults["plugins"].(map[string]any)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if _, ok := known[name]; !ok && !slices.Contains(windowsPlugins, name) {
			errs = append(errs, fmt.Errorf("plugin %q is not one of containerd's", name))
		}
	}
	return errors.Join(errs...)
}

// differences returns an error for every value in the file that is not in effect.
func differences(at []string, written, effective any) error {
	table, ok := written.(map[string]any)
	if !ok {
		if !sameValue(written, effective) {
			return fmt.Errorf("%s = %v, in effect is %v", strings.Join(at, "."), written, effective)
		}
		return nil
	}
	inEffect, ok := effective.(map[string]any)
	if !ok && len(table) > 0 {
		return fmt.Errorf("[%s] has no effect", strings.Join(at, "."))
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(table)) {
		errs = append(errs, differences(append(slices.Clone(at), key), table[key], inEffect[key]))
	}
	return errors.Join(errs...)
}

// sameValue compares two values; 30m and 30m0s are the same duration.
func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, ok := a.(string)
	y, ok2 := b.(string)
	if !ok || !ok2 {
		return false
	}
	dx, err := time.ParseDuration(x)
	dy, err2 := time.ParseDuration(y)
	return err == nil && err2 == nil && dx == dy
}

// checkHosts checks the syntax of a hosts file. What containerd does with it is tested with its own resolver in
// internal/verify/resolvers.
func checkHosts(_ context.Context, contents []byte, _ Options) error {
	var hosts struct {
		Server string         `toml:"server"`
		Host   map[string]any `toml:"host"`
	}
	return toml.Unmarshal(contents, &hosts)
}
