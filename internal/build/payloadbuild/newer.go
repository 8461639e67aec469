package payloadbuild

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/Masterminds/semver/v3"

	"wmco/payload"
)

// Newer prints the newer versions of each component that the module proxy lists. No listed version is not an error: a proxy
// may serve versions that it does not list.
func Newer(ctx context.Context, o Options) {
	for _, c := range payload.Components() {
		if c.Name == payload.Ours {
			continue
		}
		o.logf("%s", o.newer(ctx, c))
	}
}

func (o Options) newer(ctx context.Context, c payload.Component) string {
	line := fmt.Sprintf("%s %s: ", c.Module, c.Version)
	data, err := o.output(ctx, filepath.Join(o.Root, "payload", c.Name), "list", "-mod=readonly", "-m", "-versions", "-json=Versions", c.Module)
	if err != nil {
		return line + "the module proxy does not list its versions"
	}
	var listed struct{ Versions []string }
	if err := json.Unmarshal(data, &listed); err != nil {
		return line + "the output of go list is not JSON"
	}
	patch, latest := newest(c.Version, listed.Versions)
	switch {
	case patch == "" && latest == "":
		return line + "nothing newer is listed"
	case patch == "" || patch == latest:
		return line + latest + " is available"
	case latest == "":
		return line + patch + " is available"
	}
	return line + patch + " and " + latest + " are available"
}

// newest returns the newest patch of the same minor version and the newest version of all. Each is empty if none is newer.
// Prereleases are ignored.
func newest(have string, listed []string) (patch, latest string) {
	current, err := semver.NewVersion(have)
	if err != nil {
		return "", ""
	}
	bestPatch, best := current, current
	for _, text := range listed {
		v, err := semver.NewVersion(text)
		if err != nil || v.Prerelease() != "" {
			continue
		}
		if v.GreaterThan(best) {
			best, latest = v, text
		}
		if v.Major() == current.Major() && v.Minor() == current.Minor() && v.GreaterThan(bestPatch) {
			bestPatch, patch = v, text
		}
	}
	return patch, latest
}
