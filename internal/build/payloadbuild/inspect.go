package payloadbuild

import (
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"wmco/internal/build/bills"
	"wmco/payload"
)

// inspectProgram reads the build information of an executable and compares it with the table.
func (r recipe) inspectProgram(path string) (*debug.BuildInfo, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", r.Name, err)
	}
	for _, c := range r.listClaims(info) {
		if c.have != c.want {
			return nil, fmt.Errorf("checking %s: its %s is %q, but the table has %q", r.Name, c.what, c.have, c.want)
		}
	}
	return info, nil
}

type claim struct{ what, have, want string }

func (r recipe) listClaims(info *debug.BuildInfo) []claim {
	module, version := r.Module, r.Version
	if r.component.IsOurs() {
		version = "(devel)" // go build does not know the version of the main module
	}
	if r.Name == payload.Verifier {
		module = r.Package
	}
	claims := []claim{
		{"package", info.Path, r.Package},
		{"module", info.Main.Path, module},
		{"version", bills.EffectiveModule(info.Main).Version, version},
		{"release of Go", info.GoVersion, r.release},
		{"GOOS", buildSetting(info, "GOOS"), "windows"},
		{"GOARCH", buildSetting(info, "GOARCH"), "amd64"},
		{"CGO_ENABLED", buildSetting(info, "CGO_ENABLED"), "0"},
		{"-trimpath", buildSetting(info, "-trimpath"), "true"},
		{"vcs", buildSetting(info, "vcs"), ""},
	}
	have := strings.Split(buildSetting(info, "DefaultGODEBUG"), ",")
	for _, d := range r.component.Debug {
		// default= is written as the settings that it implies.
		if !strings.HasPrefix(d, "default=") && !slices.Contains(have, d) {
			claims = append(claims, claim{"GODEBUG", buildSetting(info, "DefaultGODEBUG"), d})
		}
	}
	if len(r.component.Debug) == 0 {
		claims = append(claims, claim{"GODEBUG", buildSetting(info, "DefaultGODEBUG"), ""})
	}
	return claims
}

func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
