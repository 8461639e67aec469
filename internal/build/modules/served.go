package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// served asks the module proxy for every pin: first for the lists of versions, then for each version that is not listed.
func served(ctx context.Context, list []pin) (map[pin]state, map[pin]*RefusedError, error) {
	scratch, err := os.MkdirTemp("", "pins-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // what remains of it is harmless
	listed, err := listedVersions(ctx, scratch, list)
	if err != nil {
		return nil, nil, err
	}
	states := map[pin]state{}
	var others []pin
	for _, p := range list {
		if slices.Contains(listed[p.Module], p.Version) {
			states[p] = pinListed
			continue
		}
		states[p] = pinUnlisted
		others = append(others, p)
	}
	refused, err := download(ctx, scratch, others)
	for p := range maps.Keys(refused) {
		states[p] = pinNotServed
	}
	return states, refused, err
}

// batch is the number of modules in one go command.
const batch = 100

// listedVersions returns the versions that the proxy lists for each module. The go command lists releases but no
// pseudo-versions; for modules pinned to one, the proxy's own list is read.
func listedVersions(ctx context.Context, dir string, list []pin) (map[string][]string, error) {
	var paths []string
	pseudo := map[string]bool{}
	for _, p := range list {
		paths = append(paths, p.Module)
		pseudo[p.Module] = pseudo[p.Module] || isPseudo(p.Version)
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	listed := map[string][]string{}
	for some := range slices.Chunk(paths, batch) {
		// With -e, a module whose list is refused has no versions.
		out, err := goCommand(ctx, dir, []string{"GOFLAGS=-mod=mod"}, append([]string{"list", "-e", "-m", "-versions", "-json=Path,Versions"}, some...)...)
		if err != nil {
			return nil, err
		}
		for m, err := range decode[struct {
			Path     string
			Versions []string
		}](out) {
			if err != nil {
				return nil, err
			}
			listed[m.Path] = m.Versions
		}
	}
	for module, is := range pseudo {
		if is {
			listed[module] = append(listed[module], proxyList(ctx, dir, module)...)
		}
	}
	for _, versions := range listed {
		if len(versions) > 0 {
			return listed, nil
		}
	}
	return nil, errors.New("asking the module proxy: it lists no version of any module; fix: check go env GOPROXY")
}

// isPseudo reports whether a version is a pseudo-version: it ends in a time of 14 digits and 12 digits of a commit
// (https://go.dev/ref/mod#pseudo-versions).
func isPseudo(version string) bool {
	parts := strings.Split(strings.TrimSuffix(version, "+incompatible"), "-")
	if len(parts) < 3 {
		return false
	}
	stamp := parts[len(parts)-2]
	stamp = stamp[strings.LastIndex(stamp, ".")+1:]
	return len(stamp) == 14 && strings.Trim(stamp, "0123456789") == "" && len(parts[len(parts)-1]) == 12
}

// download downloads versions to an empty module cache and returns those that are refused.
func download(ctx context.Context, dir string, list []pin) (map[pin]*RefusedError, error) {
	cache := filepath.Join(dir, "modules")
	// The contents are not used, so the checksum database is not needed.
	env := []string{"GOMODCACHE=" + cache, "GOFLAGS=-modcacherw", "GONOSUMDB=*"}
	refused := map[pin]*RefusedError{}
	for some := range slices.Chunk(list, batch) {
		args := []string{"mod", "download", "-json"}
		for _, p := range some {
			args = append(args, p.String())
		}
		// It fails if one of them fails; the output has the error of each.
		out, _ := goCommand(ctx, dir, env, args...)
		answered := 0
		for m, err := range decode[struct{ Path, Version, Error string }](out) {
			if err != nil {
				return nil, err
			}
			answered++
			if m.Error == "" {
				continue
			}
			p := pin{m.Path, m.Version}
			r, ok := findRefused(m.Error)
			if !ok {
				r = &RefusedError{Module: p.Module, Version: p.Version, Reason: strings.Join(strings.Fields(m.Error), " ")}
			}
			refused[p] = r
		}
		if answered != len(some) {
			return nil, fmt.Errorf("go mod download answered for %d of %d modules", answered, len(some))
		}
		if err := os.RemoveAll(cache); err != nil {
			return nil, err
		}
	}
	return refused, ctx.Err()
}

// nearest returns the nearest listed versions below and above a pin. It is empty if there are none.
func nearest(ctx context.Context, p pin) []string {
	dir := os.TempDir()
	if isPseudo(p.Version) {
		return neighbours(proxyList(ctx, dir, p.Module), p.Version)
	}
	var near []string
	for _, query := range []string{"<", ">"} {
		out, err := goCommand(ctx, dir, []string{"GOFLAGS=-mod=mod"}, "list", "-m", "-f", "{{.Version}}", p.Module+"@"+query+p.Version)
		if err == nil {
			near = append(near, strings.TrimSpace(string(out)))
		}
	}
	return near
}

// neighbours returns the pseudo-versions before and after one. Those of one base version sort by time.
func neighbours(listed []string, version string) []string {
	base, _, _ := strings.Cut(version, "-")
	same := slices.DeleteFunc(slices.Clone(listed), func(v string) bool { return !isPseudo(v) || !strings.HasPrefix(v, base+"-") })
	slices.Sort(same)
	i, _ := slices.BinarySearch(same, version)
	return same[max(0, i-1):min(len(same), i+1)]
}

// proxyList returns the list of a module's versions from the first proxy of GOPROXY, with pseudo-versions
// (https://go.dev/ref/mod#goproxy-protocol: $base/$module/@v/list). It is empty if the proxy does not answer.
func proxyList(ctx context.Context, dir, module string) []string {
	out, err := goCommand(ctx, dir, nil, "env", "GOPROXY")
	if err != nil {
		return nil
	}
	base := strings.TrimSpace(string(out))
	if end := strings.IndexAny(base, ",|"); end >= 0 {
		base = base[:end]
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/"+path.Join(escape(module), "@v/list"), nil)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return strings.Fields(string(body))
}

// escape replaces each upper-case letter with an exclamation mark and the lower-case letter, as the protocol requires.
func escape(module string) string {
	var out strings.Builder
	for _, r := range module {
		if unicode.IsUpper(r) {
			out.WriteByte('!')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
