package release

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"wmco/payload/store"
)

// readList reads a list of any release. store.Decode takes only that of its own.
func readList(name string) (store.List, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return store.List{}, err
	}
	var l store.List
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("reading the list of executables %q: %w", name, err)
	}
	if l.Schema == 0 || len(l.Executables) == 0 {
		return l, fmt.Errorf("reading the list of executables %q: it lists none", name)
	}
	return l, nil
}

// firstRelease is in the notes of the release before which there is none.
const firstRelease = `
## What nodes of the existing operator get with their adoption

* Kubelets have the cluster's pull secret, as on Linux nodes. To keep it away, set ` + "`pullSecret: MirrorsOnly`" + ` before you adopt the first node.
* Mirrors keep the order of their objects, and have the credentials of the longest match in the pull secret.

` + "`wmco diff`" + ` shows every change of a node before its adoption; docs/takeover.md has the steps.
`

// NotesOf returns the release notes about the executables, as markdown: those of the list in a file, compared with the
// list of the release before. Without a name of that, all are listed.
func NotesOf(version, before, now string) (string, error) {
	after, err := readList(now)
	if err != nil {
		return "", err
	}
	if before == "" {
		return Notes(version, store.List{}, after) + firstRelease, nil
	}
	old, err := readList(before)
	if err != nil {
		return "", err
	}
	return Notes(version, old, after), nil
}

// Notes lists how two lists differ.
func Notes(version string, before, after store.List) string {
	old, now := byName(before), byName(after)
	var changed, same []string
	for _, name := range slices.Sorted(maps.Keys(merged(old, now))) {
		was, is := old[name], now[name]
		if was.Raw.Digest == is.Raw.Digest {
			same = append(same, fmt.Sprintf("%s %s", name, is.Version))
			continue
		}
		changed = append(changed, fmt.Sprintf("| %s | %s | %s | %s |", name, cmp.Or(was.Version, "-"), cmp.Or(is.Version, "removed"), why(was, is)))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# wmco %s\n\n## Executables on Windows nodes\n", version)
	if len(changed) > 0 {
		fmt.Fprintf(&out, "\n| executable | before | now | what changed |\n|---|---|---|---|\n%s\n", strings.Join(changed, "\n"))
	}
	if len(same) > 0 {
		fmt.Fprintf(&out, "\nUnchanged: %s.\n", strings.Join(same, ", "))
	}
	return out.String()
}

// why returns what makes two executables of one name differ.
func why(was, is store.Entry) string {
	switch {
	case was.Name == "":
		return "new"
	case is.Name == "":
		return "removed"
	case was.Module != is.Module:
		return "built from " + is.Module
	case was.Version != is.Version:
		return "version"
	case was.Go != is.Go:
		return "built with " + is.Go + ", before with " + was.Go
	}
	return "a module that it links"
}

func byName(l store.List) map[string]store.Entry {
	all := map[string]store.Entry{}
	for _, e := range l.Executables {
		all[e.Name] = e
	}
	return all
}

func merged(a, b map[string]store.Entry) map[string]store.Entry {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func trimV(version string) string { return strings.TrimPrefix(version, "v") }
