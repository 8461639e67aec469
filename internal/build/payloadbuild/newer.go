package payloadbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"wmco/payload"
)

// Newer prints the newer versions of each component that the module proxy serves: those that it lists, and the next
// patch and minor releases, which are asked for by name. A proxy may serve versions that it does not list.
func Newer(ctx context.Context, o Options) {
	for _, c := range payload.Components() {
		if c.Name == payload.Ours {
			continue
		}
		o.logf("%s", o.newerVersions(ctx, c))
	}
}

func (o Options) newerVersions(ctx context.Context, c payload.Component) string {
	line := fmt.Sprintf("%s %s: ", c.Module, c.Version)
	dir := filepath.Join(o.Root, "payload", c.Name)
	listed, err := o.listedVersions(ctx, dir, c.Module)
	next, failed := o.nextReleases(ctx, dir, c)
	if err := errors.Join(err, failed); err != nil {
		return line + "the module proxy does not answer: " + err.Error()
	}
	patch, latest := newestVersions(c.Version, append(listed, next...))
	switch {
	case patch == "" && latest == "":
		return line + "nothing newer is served"
	case patch == "" || patch == latest:
		return line + latest + " is available"
	case latest == "":
		return line + patch + " is available"
	}
	return line + patch + " and " + latest + " are available"
}

// listedVersions returns the versions that the module proxy lists. None is no error.
func (o Options) listedVersions(ctx context.Context, dir, module string) ([]string, error) {
	found, err := o.queryModules(ctx, dir, "-versions", module)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].Versions, nil
}

// lookahead is how many patch releases are asked for at a time. Some are never served: k8s.io/kubernetes v1.35.7 is
// refused, and v1.35.8 is not.
const lookahead = 4

// nextReleases returns the releases after that of a component that the module proxy serves: patches, and those of the
// next minor version, unless another component is of a newer one.
func (o Options) nextReleases(ctx context.Context, dir string, c payload.Component) ([]string, error) {
	pinned, err := semver.NewVersion(c.Version)
	if err != nil || pinned.Prerelease() != "" { // a pseudo-version
		return nil, err
	}
	patches, err := o.servedFrom(ctx, dir, c.Module, pinned.IncPatch())
	if err != nil || hasNewerSibling(c, pinned) {
		return patches, err
	}
	minor, err := o.servedFrom(ctx, dir, c.Module, pinned.IncMinor())
	return append(patches, minor...), err
}

// hasNewerSibling reports whether another component has a newer version of the module, as a newer Kubernetes is.
func hasNewerSibling(c payload.Component, pinned *semver.Version) bool {
	return slices.ContainsFunc(payload.Components(), func(other payload.Component) bool {
		v, err := semver.NewVersion(other.Version)
		return other.Module == c.Module && err == nil && v.GreaterThan(pinned)
	})
}

// servedFrom returns the patch releases from this one on, until the module proxy serves none of the next few.
func (o Options) servedFrom(ctx context.Context, dir, module string, next semver.Version) ([]string, error) {
	var served []string
	for {
		var names []string
		for range lookahead {
			names = append(names, module+"@v"+next.String())
			next = next.IncPatch()
		}
		found, err := o.queryModules(ctx, dir, names...)
		if err != nil {
			return nil, err
		}
		before := len(served)
		for _, m := range found {
			switch {
			case m.Error == nil:
				served = append(served, m.Version)
			case !refused.MatchString(m.Error.Err):
				return nil, errors.New(m.Error.Err)
			}
		}
		if len(served) == before {
			return served, nil
		}
	}
}

// refused matches the answer of a proxy that does not have a version.
var refused = regexp.MustCompile(`: (403 Forbidden|404 Not Found|410 Gone)`)

// moduleQuery is what `go list -m -json` prints of a module.
type moduleQuery struct {
	Version  string
	Versions []string
	Error    *struct{ Err string }
}

func (o Options) queryModules(ctx context.Context, dir string, what ...string) ([]moduleQuery, error) {
	data, err := o.goOutput(ctx, dir, append([]string{"list", "-mod=readonly", "-m", "-e", "-json=Version,Versions,Error"}, what...)...)
	if err != nil {
		return nil, err
	}
	var all []moduleQuery
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var m moduleQuery
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		all = append(all, m)
	}
}

// newestVersions returns the newest patch of the same minor version and the newest version of all. Each is empty if
// none is newer. Prereleases are ignored.
func newestVersions(have string, listed []string) (patch, latest string) {
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
