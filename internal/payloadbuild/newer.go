package payloadbuild

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/Masterminds/semver/v3"

	"wmco/payload"
)

// Newer tells, for each component, which newer versions the module proxy lists. That it lists none is told too, and is no
// error: a proxy need not list what it serves.
func Newer(ctx context.Context, o Options) {
	for _, c := range payload.Components() {
		if c.Name == payload.Ours {
			continue
		}
		o.tell("%s", o.newer(ctx, c))
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
		return line + "the answer of go list is not understood"
	}
	patch, latest := newest(c.Version, listed.Versions)
	switch {
	case patch == "" && latest == "":
		return line + "nothing newer is listed"
	case patch == "" || patch == latest:
		return line + latest + " is there"
	case latest == "":
		return line + patch + " is there"
	}
	return line + patch + " and " + latest + " are there"
}

// newest are the newest version of the same minor version, and the newest of all; empty where there is none that is newer.
// Versions before a release do not count.
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
