package applier

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// target is what a host should be: what a bundle wants there, and what must not be there any more. What was there before
// a change is one as well, so that rolling back is applying.
type target struct {
	files    []fileItem
	settings []settingItem
	services []serviceItem
	// state are the paths that programs on the host write.
	state []bundle.State
	// exclusive are folders that hold nothing but files of the target, by bundle.FoldPath.
	exclusive map[string]bool
	// logs are the folders in which programs write logs, by bundle.FoldPath.
	logs map[string]bool
}

// fileItem is a file or folder as it should be. Kind FileAbsent is one that must go, for the reason.
type fileItem struct {
	id     bundle.EntryID
	path   string
	kind   FileKind
	access bundle.Access
	// inherited is the access that a folder gets which the bundle does not name: that of the folder it is in.
	inherited bundle.Access
	impact    bundle.Impact
	// digest is how the bundle calls the contents, content what they are.
	digest  bundle.Digest
	content content
	reason  Reason
}

// content names bytes. A zero one is not known on this host.
type content struct {
	// SHA256 is of the raw bytes, in hex.
	SHA256 string `json:"sha256,omitempty"`
	// Size is in bytes, -1 where only the digest is known.
	Size int64 `json:"size,omitempty"`
}

func contentOf(data []byte) content {
	sum := sha256.Sum256(data)
	return content{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// value is the text of a setting or variable, which may be a secret that this host has not seen.
type value struct {
	text string
	// known tells that text is the value; otherwise content names it.
	known   bool
	digest  bundle.Digest
	content content
}

func plainValue(text string) value {
	return value{text: text, known: true, content: contentOf([]byte(text))}
}

// is tells whether text is the value.
func (v value) is(text string) bool {
	if v.known {
		return v.text == text
	}
	return v.content.SHA256 != "" && v.content.SHA256 == contentOf([]byte(text)).SHA256
}

// settingItem is a setting as it should be.
type settingItem struct {
	Setting
	value  value
	impact bundle.Impact
}

// serviceItem is a service as it should be.
type serviceItem struct {
	// config lacks the environment, which is in variables.
	config    ServiceConfig
	variables []variable
	present   bool
	// run tells that it should run.
	run    bool
	reads  []string
	probe  bundle.Probe
	logs   []bundle.Log
	impact bundle.Impact
}

type variable struct {
	name  string
	value value
}

func splitVariable(line string) variable {
	name, text, _ := strings.Cut(line, "=")
	return variable{name: name, value: plainValue(text)}
}

// known is what a host knows of the contents that a manifest names: by sha256 for public ones, and for secret ones, whose
// digests are keyed, by what came with them.
type known map[bundle.Digest]content

func (k known) content(d bundle.Digest, size int64) content {
	if c, ok := k[d]; ok {
		return c
	}
	if hexadecimal, ok := strings.CutPrefix(string(d), "sha256:"); ok {
		return content{SHA256: hexadecimal, Size: cmp.Or(size, -1)}
	}
	return content{}
}

// aim is the target of a bundle.
func aim(b bundle.Bundle, contents known) target {
	t := target{exclusive: map[string]bool{}, logs: map[string]bool{}}
	for _, l := range b.Layers() {
		t.addFiles(l, contents)
		t.addSettings(l, contents)
		t.state = append(t.state, l.State...)
	}
	for _, s := range b.Services() {
		t.services = append(t.services, wantService(s, b.Cluster.Environments, contents))
		for _, l := range s.Logs {
			t.logs[bundle.FoldPath(bundle.Dir(l.Path))] = true
		}
	}
	t.addParents()
	return t
}

func (t *target) addFiles(l bundle.Layer, contents known) {
	for _, d := range l.Directories {
		t.files = append(t.files, fileItem{
			id: bundle.KindDirectory.ID(d.Path), path: d.Path, kind: FileDirectory, access: d.Access, impact: bundle.ImpactNone,
		})
		if d.Exclusive {
			t.exclusive[bundle.FoldPath(d.Path)] = true
		}
	}
	for _, f := range l.Files {
		t.files = append(t.files, fileItem{
			id: bundle.KindFile.ID(f.Path), path: f.Path, kind: FileRegular, access: f.Access, impact: f.Impact,
			digest: f.Digest, content: contents.content(f.Digest, f.Size),
		})
	}
	for _, p := range l.Payload {
		t.files = append(t.files, fileItem{
			id: bundle.KindPayload.ID(p.Path), path: p.Path, kind: FileRegular, access: bundle.AccessUsers, impact: p.Impact,
			digest: p.Digest, content: contents.content(p.Digest, p.Size),
		})
	}
}

func (t *target) addSettings(l bundle.Layer, contents known) {
	for _, s := range l.Settings() {
		v := plainValue(s.Value)
		if s.Digest != "" {
			v = contents.value(s.Digest)
		}
		t.settings = append(t.settings, settingItem{
			Setting: Setting{Kind: s.Kind, Name: s.Name, Value: v.text, Present: true}, value: v, impact: s.Impact,
		})
	}
}

// value is one that travels as content.
func (k known) value(d bundle.Digest) value { return value{digest: d, content: k.content(d, 0)} }

func wantService(s bundle.Service, environments []bundle.Environment, contents known) serviceItem {
	item := serviceItem{
		config: ServiceConfig{
			Name: s.Name, Description: s.Description, Start: s.Start, CommandLine: bundle.CommandLine(s.Argv),
			Dependencies: slices.Sorted(slices.Values(s.Dependencies)), Recovery: s.Recovery,
		},
		present: true, run: s.Start == bundle.StartAuto, reads: s.Reads, probe: s.Probe, logs: s.Logs, impact: s.Impact,
	}
	for _, e := range environments {
		if e.Name != s.Environment {
			continue
		}
		for _, v := range e.Variables {
			item.variables = append(item.variables, wantVariable(v, contents))
		}
	}
	return item
}

func wantVariable(v bundle.Variable, contents known) variable {
	if v.Secret() {
		return variable{name: v.Name, value: contents.value(v.Digest)}
	}
	return variable{name: v.Name, value: plainValue(v.Value)}
}

// addParents adds the folders that others are in and that the bundle does not name, and sorts.
func (t *target) addParents() {
	have, access := map[string]bool{}, map[string]bundle.Access{}
	for _, f := range t.files {
		have[bundle.FoldPath(f.path)] = true
		if f.kind == FileDirectory {
			access[bundle.FoldPath(f.path)] = f.access
		}
	}
	for _, f := range slices.Clone(t.files) {
		for dir := bundle.Dir(f.path); !isRoot(dir) && !have[bundle.FoldPath(dir)]; dir = bundle.Dir(dir) {
			have[bundle.FoldPath(dir)] = true
			// Without an access: one that is there keeps its own.
			t.files = append(t.files, fileItem{id: bundle.KindDirectory.ID(dir), path: dir, kind: FileDirectory, impact: bundle.ImpactNone, inherited: nearest(access, dir)})
		}
	}
	sortFiles(t.files)
}

// nearest is the access of the innermost folder around a path that has one.
func nearest(access map[string]bundle.Access, path string) bundle.Access {
	for dir := bundle.Dir(path); !isRoot(dir); dir = bundle.Dir(dir) {
		if a := access[bundle.FoldPath(dir)]; a != "" {
			return a
		}
	}
	return bundle.AccessUsers
}

// sortFiles puts folders first, the outer ones before the inner ones.
func sortFiles(files []fileItem) {
	slices.SortStableFunc(files, func(a, b fileItem) int {
		return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(bundle.FoldPath(a.path), bundle.FoldPath(b.path)))
	})
}

func rank(k FileKind) int {
	if k == FileDirectory {
		return 0
	}
	return 1
}

// isRoot tells whether a path is that of a drive, `C:\`.
func isRoot(path string) bool { return len(path) <= len(`C:\`) }

// drop adds to the target what must go: entries of owned bundles that it does not want. What was found in place, and what
// is left behind on purpose, stays.
func (t *target) drop(owned []bundle.Bundle, found map[bundle.EntryID]bool, made []string) {
	d := dropper{target: t, wanted: t.names(), found: found}
	for _, b := range owned {
		old := aim(b, nil)
		for _, f := range old.files {
			d.file(f)
		}
		for _, s := range old.settings {
			d.setting(s)
		}
		for _, s := range old.services {
			d.service(s)
		}
	}
	for _, dir := range made {
		d.file(fileItem{id: bundle.KindDirectory.ID(dir), path: dir, kind: FileDirectory, access: bundle.AccessUsers})
	}
}

// names are those of all that the target mentions, folded.
func (t *target) names() map[string]bool {
	names := map[string]bool{}
	for _, f := range t.files {
		names[fileName(f.path)] = true
	}
	for _, s := range t.settings {
		names[string(s.ID())] = true
	}
	for _, s := range t.services {
		names[serviceName(s.config.Name)] = true
	}
	return names
}

func fileName(path string) string    { return "path " + bundle.FoldPath(path) }
func serviceName(name string) string { return "service " + strings.ToLower(name) }

// dropper adds each thing once.
type dropper struct {
	target *target
	wanted map[string]bool
	found  map[bundle.EntryID]bool
}

func (d dropper) file(f fileItem) {
	if f.kind == FileDirectory && f.access == "" || d.wanted[fileName(f.path)] {
		return // a folder that others made, or one that stays
	}
	d.wanted[fileName(f.path)] = true
	f.kind, f.content, f.reason = FileAbsent, content{}, ReasonUnwanted
	d.target.files = append(d.target.files, f)
}

func (d dropper) setting(s settingItem) {
	if bundle.Describe(s.Kind).Permanent || d.wanted[string(s.ID())] || d.found[s.ID()] {
		return
	}
	d.wanted[string(s.ID())] = true
	s.Present = false
	d.target.settings = append(d.target.settings, s)
}

func (d dropper) service(s serviceItem) {
	if d.wanted[serviceName(s.config.Name)] {
		return
	}
	d.wanted[serviceName(s.config.Name)] = true
	s.present, s.run = false, false
	d.target.services = append(d.target.services, s)
}

// serviceNames are all services of the target, by name.
func (t *target) serviceNames() []string {
	names := map[string]bool{}
	for _, s := range t.services {
		names[s.config.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
