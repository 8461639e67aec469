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

// inspect reads the build information of an executable and compares it with the table.
func (r recipe) inspect(path string) (*debug.BuildInfo, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %s: %w", r.Name, err)
	}
	for _, c := range r.claims(info) {
		if c.have != c.want {
			return nil, fmt.Errorf("checking %s: its %s is %q, but the table has %q", r.Name, c.what, c.have, c.want)
		}
	}
	return info, nil
}

type claim struct{ what, have, want string }

func (r recipe) claims(info *debug.BuildInfo) []claim {
	version := r.Version
	if r.Component == payload.Ours {
		version = "(devel)" // go build does not know the version of the main module
	}
	claims := []claim{
		{"package", info.Path, r.Package},
		{"module", info.Main.Path, r.Module},
		{"version", bills.Built(info.Main).Version, version},
		{"release of Go", info.GoVersion, r.release},
		{"GOOS", setting(info, "GOOS"), "windows"},
		{"GOARCH", setting(info, "GOARCH"), "amd64"},
		{"CGO_ENABLED", setting(info, "CGO_ENABLED"), "0"},
		{"-trimpath", setting(info, "-trimpath"), "true"},
		{"vcs", setting(info, "vcs"), ""},
	}
	have := strings.Split(setting(info, "DefaultGODEBUG"), ",")
	for _, d := range r.component.Debug {
		// default= is written as the settings that it implies.
		if !strings.HasPrefix(d, "default=") && !slices.Contains(have, d) {
			claims = append(claims, claim{"GODEBUG", setting(info, "DefaultGODEBUG"), d})
		}
	}
	if len(r.component.Debug) == 0 {
		claims = append(claims, claim{"GODEBUG", setting(info, "DefaultGODEBUG"), ""})
	}
	return claims
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
