package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Target is what a host should be: what a bundle wants there, and what must be removed. The state before a change is a
// target as well, so that rolling back is applying.
type Target struct {
	Files    []WantedFile
	Settings []WantedSetting
	Services []WantedService
	// State are the paths that programs on the host write.
	State []bundle.State
	// Exclusive are folders that hold nothing but files of the target, by bundle.FoldPath.
	Exclusive map[string]bool
	// Logs are the folders in which programs write logs, by bundle.FoldPath.
	Logs map[string]bool
}

// WantedFile is a file or folder as it should be. With the kind FileAbsent it is removed, for Reason.
type WantedFile struct {
	ID     bundle.EntryID
	Path   string
	Kind   FileKind
	Access bundle.Access
	// Inherited is the access of a folder in the roots that the bundle does not name: that of the folder around it.
	Inherited bundle.Access
	Impact    bundle.Impact
	// Digest is the bundle's name for the contents; Content is what the host knows of them.
	Digest  bundle.Digest
	Content Content
	Reason  protocol.Reason
}

// WantedSetting is a setting as it should be.
type WantedSetting struct {
	Kind    bundle.EntryKind
	Name    string
	Value   Value
	Present bool
	Impact  bundle.Impact
}

// ID is the name of the setting's entry in a bundle.
func (s WantedSetting) ID() bundle.EntryID { return s.Kind.ID(s.Name) }

// WantedService is a service as it should be.
type WantedService struct {
	// Config has no environment: that is in Variables.
	Config    ServiceConfig
	Variables []Variable
	Present   bool
	// Run reports whether the service should run.
	Run bool
	// Reads are the files and executables whose change restarts the service.
	Reads  []string
	Probe  bundle.Probe
	Impact bundle.Impact
}

// NewTarget returns the target of a bundle.
func NewTarget(b bundle.Bundle, contents Contents) Target {
	t := Target{Exclusive: map[string]bool{}, Logs: map[string]bool{}}
	for _, l := range b.Layers() {
		t.addLayer(l, contents)
	}
	for _, s := range b.Services() {
		t.Services = append(t.Services, wantService(s, b.Cluster.Environments, contents))
		for _, l := range s.Logs {
			t.Logs[bundle.FoldPath(bundle.Dir(l.Path))] = true
		}
		if s.Name == RuntimeService {
			t.Files = append(t.Files, WantedFile{
				ID: bundle.KindDirectory.ID(RuntimeFolder), Path: RuntimeFolder, Kind: FileDirectory, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone,
			})
		}
	}
	t.addParents()
	return t
}

// addLayer adds the entries of a layer except its services, which depend on both layers.
func (t *Target) addLayer(l bundle.Layer, contents Contents) {
	t.State = append(t.State, l.State...)
	for _, d := range l.Directories {
		t.Files = append(t.Files, WantedFile{
			ID: bundle.KindDirectory.ID(d.Path), Path: d.Path, Kind: FileDirectory, Access: d.Access, Impact: bundle.ImpactNone,
		})
		if d.Exclusive {
			t.Exclusive[bundle.FoldPath(d.Path)] = true
		}
	}
	for _, s := range l.State {
		if bundle.FoldPath(s.Path) == bundle.FoldPath(KubeletKeys) {
			t.Files = append(t.Files, WantedFile{
				ID: bundle.KindDirectory.ID(s.Path), Path: s.Path, Kind: FileDirectory, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone,
			})
		}
	}
	for _, f := range l.Files {
		t.Files = append(t.Files, WantedFile{
			ID: bundle.KindFile.ID(f.Path), Path: f.Path, Kind: FileRegular, Access: f.Access, Impact: f.Impact,
			Digest: f.Digest, Content: contents.ContentOf(f.Digest, f.Size),
		})
	}
	for _, p := range l.Payload {
		t.Files = append(t.Files, WantedFile{
			ID: bundle.KindPayload.ID(p.Path), Path: p.Path, Kind: FileRegular, Access: bundle.AccessUsers, Impact: p.Impact,
			Digest: p.Digest, Content: contents.ContentOf(p.Digest, p.Size),
		})
	}
	for _, s := range l.Settings() {
		t.Settings = append(t.Settings, WantedSetting{Kind: s.Kind, Name: s.Name,
			Value: contents.ValueOf(s.Value, s.Digest), Present: true, Impact: s.Impact})
	}
}

func wantService(s bundle.Service, environments []bundle.Environment, contents Contents) WantedService {
	item := WantedService{
		Config: ServiceConfig{
			Name: s.Name, Description: s.Description, Start: s.Start, CommandLine: bundle.CommandLine(s.Argv),
			Dependencies: slices.Sorted(slices.Values(s.Dependencies)), Recovery: s.Recovery,
		},
		Present: true, Run: s.Start == bundle.StartAuto, Reads: s.Reads, Probe: s.Probe, Impact: s.Impact,
	}
	for _, e := range environments {
		if e.Name != s.Environment {
			continue
		}
		for _, v := range e.Variables {
			item.Variables = append(item.Variables, Variable{Name: v.Name, Value: contents.ValueOf(v.Value, v.Digest)})
		}
	}
	return item
}

// addParents adds the parent folders that the bundle does not name, and sorts.
func (t *Target) addParents() {
	have, access := map[string]bool{}, map[string]bundle.Access{}
	for _, f := range t.Files {
		have[bundle.FoldPath(f.Path)] = true
		if f.Kind == FileDirectory {
			access[bundle.FoldPath(f.Path)] = f.Access
		}
	}
	for _, f := range slices.Clone(t.Files) {
		if f.Path == RuntimeFolder {
			continue // the folder around it is of Windows
		}
		for dir := bundle.Dir(f.Path); !IsRoot(dir) && !have[bundle.FoldPath(dir)]; dir = bundle.Dir(dir) {
			have[bundle.FoldPath(dir)] = true
			folder := WantedFile{ID: bundle.KindDirectory.ID(dir), Path: dir, Kind: FileDirectory, Impact: bundle.ImpactNone}
			if inRoots(dir) { // others keep the access that they have
				folder.Inherited = nearestAccess(access, dir)
			}
			t.Files = append(t.Files, folder)
		}
	}
	SortFiles(t.Files)
}

// nearestAccess returns the access of the innermost folder around a path that has one.
func nearestAccess(access map[string]bundle.Access, path string) bundle.Access {
	for dir := bundle.Dir(path); !IsRoot(dir); dir = bundle.Dir(dir) {
		if a := access[bundle.FoldPath(dir)]; a != "" {
			return a
		}
	}
	return bundle.AccessUsers
}

// SortFiles sorts folders before files, and outer folders before inner ones.
func SortFiles(files []WantedFile) {
	slices.SortStableFunc(files, func(a, b WantedFile) int {
		return cmp.Or(cmp.Compare(rankOfKind(a.Kind), rankOfKind(b.Kind)), cmp.Compare(bundle.FoldPath(a.Path), bundle.FoldPath(b.Path)))
	})
}

func rankOfKind(k FileKind) int {
	if k == FileDirectory {
		return 0
	}
	return 1
}

// IsRoot reports whether a path is that of a drive, `C:\`.
func IsRoot(path string) bool { return len(path) <= len(`C:\`) }

// DropUnwanted adds the removal of the entries of owned bundles that the target does not have. Permanent settings and
// entries that were found on the host stay. If the target has no authorized key, the old keys stay (bundle.Kind.LastStays).
func (t *Target) DropUnwanted(owned []bundle.Bundle, found map[bundle.EntryID]bool, made []string) {
	d := dropper{target: t, wanted: t.FoldedNames(), found: found, kinds: t.settingKinds()}
	for _, b := range owned {
		old := NewTarget(b, nil)
		for _, f := range old.Files {
			d.dropFile(f)
		}
		for _, s := range old.Settings {
			d.dropSetting(s)
		}
		for _, s := range old.Services {
			d.dropService(s)
		}
	}
	for _, dir := range made {
		d.dropFile(WantedFile{ID: bundle.KindDirectory.ID(dir), Path: dir, Kind: FileDirectory, Access: bundle.AccessUsers})
	}
}

// FoldedNames returns the folded names of everything in the target.
func (t *Target) FoldedNames() map[string]bool {
	names := map[string]bool{}
	for _, f := range t.Files {
		names[fileName(f.Path)] = true
	}
	for _, s := range t.Settings {
		names[string(s.ID())] = true
	}
	for _, s := range t.Services {
		names[ServiceName(s.Config.Name)] = true
	}
	return names
}

func fileName(path string) string { return "path " + bundle.FoldPath(path) }

// ServiceName returns the key of a service in FoldedNames and Owned.
func ServiceName(name string) string { return "service " + strings.ToLower(name) }

// dropper adds each entry once.
type dropper struct {
	target *Target
	wanted map[string]bool
	found  map[bundle.EntryID]bool
	// kinds are those of the settings that are wanted.
	kinds map[bundle.EntryKind]bool
}

// settingKinds returns the kinds of the settings that are wanted.
func (t *Target) settingKinds() map[bundle.EntryKind]bool {
	kinds := map[bundle.EntryKind]bool{}
	for _, s := range t.Settings {
		kinds[s.Kind] = kinds[s.Kind] || s.Present
	}
	return kinds
}

func (d dropper) dropFile(f WantedFile) {
	if f.Kind == FileDirectory && f.Access == "" || d.wanted[fileName(f.Path)] {
		return // a parent that no bundle names, or an entry that stays
	}
	d.wanted[fileName(f.Path)] = true
	f.Kind, f.Content, f.Reason = FileAbsent, Content{}, protocol.ReasonUnwanted
	d.target.Files = append(d.target.Files, f)
}

func (d dropper) dropSetting(s WantedSetting) {
	kind := bundle.Describe(s.Kind)
	stays := kind.Permanent || kind.LastStays && !d.kinds[s.Kind]
	if stays || d.wanted[string(s.ID())] || d.found[s.ID()] {
		return
	}
	d.wanted[string(s.ID())] = true
	s.Present = false
	d.target.Settings = append(d.target.Settings, s)
}

func (d dropper) dropService(s WantedService) {
	if d.wanted[ServiceName(s.Config.Name)] {
		return
	}
	d.wanted[ServiceName(s.Config.Name)] = true
	s.Present, s.Run = false, false
	d.target.Services = append(d.target.Services, s)
}

// ServiceNames returns the services of the target, sorted.
func (t *Target) ServiceNames() []string {
	names := map[string]bool{}
	for _, s := range t.Services {
		names[s.Config.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
