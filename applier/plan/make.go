package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Circumstances are what a plan depends on beside the target and the observation.
type Circumstances struct {
	// Owned holds the entries that are managed already.
	Owned map[string]bool
	// Restart are services that must restart although nothing about them differs, because an earlier run was
	// interrupted.
	Restart []string
	// Stale is what belongs to another cluster.
	Stale Stale
	// Skip are entries that stay as they are.
	Skip map[bundle.EntryID]bool
	// Only are the entries that may change; nil is all.
	Only map[bundle.EntryID]bool
	// Shadows are variables that were removed from the host since its boot. The service control manager still passes them
	// on (records.Ledger), so services get them with an empty value.
	Shadows []string
	// Networks are the HNS networks that exist.
	Networks []bundle.HNSNetwork
	// Self is the service that this program runs as: it is configured, and neither stopped nor started.
	Self string
}

// planner collects the steps of one plan.
type planner struct {
	target        *Target
	observed      Observed
	circumstances Circumstances

	earlySteps, removeSteps, inWaySteps, writeSteps, stoppedSteps []Step
	// changed are the folded paths that steps write or remove, with their impact.
	changed map[string]bundle.Impact
	// running are the folded paths that running services read.
	running  map[string]bool
	stop     map[string]cause // services to stop, by name in lower case
	putSteps []Step
	plan     Plan
}

// cause is why a service stops.
type cause struct {
	reason protocol.Reason
	impact bundle.Impact
}

// Make returns the plan that brings a host from the observation to the target.
func Make(wanted *Target, observed Observed, c Circumstances) Plan {
	t := *wanted
	t.Services = slices.Clone(t.Services)
	observed.Services = maps.Clone(observed.Services)
	p := &planner{target: &t, observed: observed, circumstances: c, changed: map[string]bundle.Impact{}, stop: map[string]cause{}}
	p.planSettings()
	p.planFolders()
	p.planContents()
	p.removeUnknown()
	p.removeUnwanted()
	p.planServices()
	p.sortSteps()
	p.plan.Foreign, p.plan.Leftovers = observed.foreignFiles(wanted)
	p.plan.Foreign = slices.DeleteFunc(p.plan.Foreign, p.removesPath)
	return p.plan
}

// removesPath reports whether the plan removes a path.
func (p *planner) removesPath(path string) bool {
	return slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Verb == protocol.VerbRemove && fileName(s.File.Path) == fileName(path) })
}

func (p *planner) adoptEntry(id bundle.EntryID, name string) {
	if !p.circumstances.Owned[name] {
		p.plan.Adopt = append(p.plan.Adopt, id)
	}
}

// skipsEntry reports whether an entry that differs stays as it is.
func (p *planner) skipsEntry(id bundle.EntryID) bool {
	if !p.circumstances.Skip[id] && (p.circumstances.Only == nil || p.circumstances.Only[id]) {
		return false
	}
	p.plan.Skipped = append(p.plan.Skipped, id)
	return true
}

func (p *planner) planSettings() {
	for _, s := range p.target.Settings {
		have := p.observed.Settings[s.ID()]
		if have.Unknown != "" {
			p.plan.Unknown = append(p.plan.Unknown, s.ID())
			continue
		}
		if have.Unavailable {
			continue
		}
		same := have.Present == s.Present && (!s.Present || s.Value.EqualsText(have.Value))
		switch {
		case same && s.Present && have.Pending:
			p.plan.Pending = append(p.plan.Pending, s.ID())
			p.plan.Reboot = true
		case same && s.Present:
			p.adoptEntry(s.ID(), string(s.ID()))
		case same:
		default:
			p.planSetting(s, have)
		}
	}
}

func (p *planner) planSetting(s WantedSetting, have Setting) {
	if p.skipsEntry(s.ID()) {
		return
	}
	a := protocol.Action{Verb: protocol.VerbSet, Entry: s.ID(), Reason: protocol.ReasonAbsent, Impact: s.Impact}
	switch {
	case !s.Present:
		a.Verb, a.Reason = protocol.VerbUnset, protocol.ReasonUnwanted
	case have.Present:
		a.Reason = protocol.ReasonDiffers
	}
	if s.Present && !s.Value.Known && s.Value.Content.SHA256 == "" {
		p.plan.Missing = append(p.plan.Missing, protocol.Missing{Digest: s.Value.Digest})
	}
	if s.Present && s.Impact == bundle.ImpactReboot {
		p.plan.Reboot = true
	}
	if s.Kind == bundle.KindEndpoint {
		p.setEndpoint(Step{Action: a, Setting: s})
		return
	}
	p.earlySteps = append(p.earlySteps, Step{Action: a, Setting: s})
}

// setEndpoint defers an endpoint whose network does not exist yet (a service creates it), and removes one only when
// it is unused.
func (p *planner) setEndpoint(s Step) {
	network, _, _ := strings.Cut(s.Setting.Value.Text, "/")
	isThere := func(n bundle.HNSNetwork) bool { return n.Name == network }
	switch {
	case !s.Setting.Present:
		p.stoppedSteps = append(p.stoppedSteps, s)
	case slices.ContainsFunc(p.circumstances.Networks, isThere):
		p.earlySteps = append(p.earlySteps, s)
	default:
		p.plan.Waiting = append(p.plan.Waiting, s.Entry)
	}
}

// planFolders creates folders in the order of the target: outer ones first.
func (p *planner) planFolders() {
	for _, f := range p.target.Files {
		if f.Kind != FileDirectory {
			continue
		}
		have := p.observed.FileAt(f.Path)
		a := protocol.Action{Verb: protocol.VerbMake, Entry: f.ID, Reason: protocol.ReasonAbsent, Impact: f.Impact}
		switch have.Kind {
		case FileDirectory:
			if !wrongAccess(f, have) {
				p.adoptEntry(f.ID, fileName(f.Path))
				continue
			}
			a.Reason = protocol.ReasonAccess
		case FileAbsent:
		case FileRegular, FileOther:
			a.Reason = protocol.ReasonInWay
		}
		if p.skipsEntry(f.ID) {
			continue
		}
		if a.Reason == protocol.ReasonInWay {
			p.clearPath(have.FileInfo)
		}
		p.earlySteps = append(p.earlySteps, Step{Action: a, File: f})
	}
}

func wrongAccess(f WantedFile, have ObservedFile) bool {
	want := cmp.Or(f.Access, f.Inherited)
	return want != "" && have.Access != "" && want != have.Access
}

func (p *planner) planContents() {
	for _, f := range p.target.Files {
		if f.Kind != FileRegular {
			continue
		}
		if f.Digest == "" {
			continue // an executable of which only the component and version are known
		}
		have := p.observed.FileAt(f.Path)
		a := protocol.Action{Verb: protocol.VerbWrite, Entry: f.ID, Reason: protocol.ReasonAbsent, Impact: f.Impact,
			Size: max(f.Content.Size, 0)}
		switch have.Kind {
		case FileRegular:
			same := f.Content.SHA256 != "" && f.Content.SHA256 == have.SHA256
			if same && !wrongAccess(f, have) {
				p.adoptEntry(f.ID, fileName(f.Path))
				continue
			}
			a.Reason = protocol.ReasonDiffers
			if same {
				a.Reason, a.Impact = protocol.ReasonAccess, bundle.ImpactNone
			}
		case FileAbsent:
		case FileDirectory, FileOther:
			a.Reason = protocol.ReasonInWay
		}
		if p.skipsEntry(f.ID) {
			continue
		}
		if a.Reason == protocol.ReasonInWay {
			p.clearPath(have.FileInfo)
		}
		if !p.readByRunning(f.Path) {
			a.Impact = bundle.ImpactNone
		}
		if f.Content.SHA256 == "" {
			p.plan.Missing = append(p.plan.Missing, protocol.Missing{Digest: f.Digest})
		}
		p.changed[bundle.FoldPath(f.Path)] = a.Impact
		p.writeSteps = append(p.writeSteps, Step{Action: a, File: f})
	}
}

// readByRunning reports whether a running service reads the path. A change of any other file has no impact.
func (p *planner) readByRunning(path string) bool {
	key := bundle.FoldPath(path)
	if p.running == nil {
		p.running = map[string]bool{}
		for _, s := range p.target.Services {
			if p.observed.ServiceState(s.Config.Name).Status != ServiceRunning {
				continue
			}
			for _, read := range s.Reads {
				p.running[bundle.FoldPath(read)] = true
			}
		}
	}
	return p.running[key]
}

// clearPath removes an entry of another kind at a path, with everything in it.
func (p *planner) clearPath(f FileInfo) {
	for _, child := range p.observed.Folders[bundle.FoldPath(f.Path)] {
		p.clearPath(child)
	}
	p.inWaySteps = append(p.inWaySteps, removalStep(f, protocol.ReasonInWay))
}

func removalStep(f FileInfo, why protocol.Reason) Step {
	kind := bundle.KindFile
	if f.Kind == FileDirectory {
		kind = bundle.KindDirectory
	}
	item := WantedFile{ID: kind.ID(f.Path), Path: f.Path, Kind: FileAbsent, Reason: why}
	return Step{Action: protocol.Action{Verb: protocol.VerbRemove, Entry: item.ID, Reason: why, Impact: bundle.ImpactNone}, File: item}
}

// removeUnknown removes entries of exclusive folders that are not in the bundle.
func (p *planner) removeUnknown() {
	wanted := p.target.FoldedNames()
	for _, folder := range slices.Sorted(maps.Keys(p.observed.Folders)) {
		if !p.target.Exclusive[folder] && !p.target.insideExclusive(folder) {
			continue
		}
		for _, f := range p.observed.Folders[folder] {
			if !wanted[fileName(f.Path)] {
				why := protocol.ReasonUnknown
				if p.circumstances.Owned[fileName(f.Path)] {
					why = protocol.ReasonUnwanted
				}
				if s := removalStep(f, why); !p.skipsEntry(s.Entry) {
					p.removeSteps = append(p.removeSteps, s)
				}
			}
		}
	}
}

// removeUnwanted removes managed entries that the target does not have. A folder is removed if nothing else is in it.
func (p *planner) removeUnwanted() {
	going := map[string]bool{}
	for _, path := range p.circumstances.Stale.Paths { // removed whole
		going[bundle.FoldPath(path)] = true
	}
	for _, s := range p.removeSteps {
		going[bundle.FoldPath(s.File.Path)] = true
	}
	items := slices.DeleteFunc(slices.Clone(p.target.Files), func(f WantedFile) bool { return f.Kind != FileAbsent })
	slices.SortStableFunc(items, func(a, b WantedFile) int { return cmp.Compare(folderDepth(b.Path), folderDepth(a.Path)) })
	for _, f := range items {
		key := bundle.FoldPath(f.Path)
		have := p.observed.Files[key]
		if have.Kind == FileAbsent || going[key] {
			continue
		}
		if have.Kind == FileDirectory && !p.isEmptied(key, going) || p.skipsEntry(f.ID) {
			continue
		}
		going[key] = true
		s := removalStep(have.FileInfo, f.Reason)
		s.Entry, s.File.ID, s.Impact = f.ID, f.ID, cmp.Or(f.Impact, bundle.ImpactNone)
		p.changed[key] = s.Impact
		p.removeSteps = append(p.removeSteps, s)
	}
	slices.SortStableFunc(p.removeSteps, func(a, b Step) int { return cmp.Compare(folderDepth(b.File.Path), folderDepth(a.File.Path)) })
}

// folderDepth is the number of folders that a path is in.
func folderDepth(path string) int { return strings.Count(path, `\`) }

// isEmptied reports whether nothing stays in a folder. Leftovers are removed before.
func (p *planner) isEmptied(folder string, going map[string]bool) bool {
	return !slices.ContainsFunc(p.observed.Folders[folder], func(f FileInfo) bool { return !going[bundle.FoldPath(f.Path)] && !IsLeftover(f.Path) })
}

// sortSteps sorts the steps.
func (p *planner) sortSteps() {
	read := p.readByStopped()
	var quiet, late []Step
	for _, s := range p.writeSteps {
		if read[bundle.FoldPath(s.File.Path)] && s.Reason != protocol.ReasonAbsent {
			late = append(late, s)
		} else {
			quiet = append(quiet, s)
		}
	}
	deletes, puts := partitionSteps(p.putSteps, func(s Step) bool { return s.Verb == protocol.VerbDelete })
	files, folders := partitionSteps(p.removeSteps, func(s Step) bool { return s.File.ID != bundle.KindDirectory.ID(s.File.Path) })
	p.plan.Steps = slices.Concat(
		p.inWaySteps, p.earlySteps, quiet, p.stopSteps(), deletes, p.clearSteps(), p.stoppedSteps, late, puts, files, p.startSteps(), folders)
}

func partitionSteps(steps []Step, first func(Step) bool) (a, b []Step) {
	for _, s := range steps {
		if first(s) {
			a = append(a, s)
		} else {
			b = append(b, s)
		}
	}
	return a, b
}

func (p *planner) clearSteps() []Step {
	var list []Step
	for _, path := range p.circumstances.Stale.Paths {
		list = append(list, Step{
			Action: protocol.Action{Verb: protocol.VerbClear, Entry: bundle.KindState.ID(path),
				Reason: protocol.ReasonStale, Impact: bundle.ImpactNone},
			File: WantedFile{Path: path},
		})
		for _, f := range p.target.Files {
			if f.Kind == FileDirectory && bundle.FoldPath(f.Path) == bundle.FoldPath(path) {
				a := protocol.Action{Verb: protocol.VerbMake, Entry: f.ID, Reason: protocol.ReasonAbsent, Impact: f.Impact}
				list = append(list, Step{Action: a, File: f})
			}
		}
	}
	for _, name := range p.circumstances.Stale.Networks {
		s := WantedSetting{Kind: bundle.KindNetwork, Name: name}
		list = append(list, Step{
			Action: protocol.Action{Verb: protocol.VerbUnset, Entry: s.ID(), Reason: protocol.ReasonStale,
				Impact: bundle.ImpactDrain}, // its pods lose it
			Setting: s,
		})
	}
	return list
}

// readByStopped returns the folded paths that stopping services read. They change while these services are stopped.
func (p *planner) readByStopped() map[string]bool {
	read := map[string]bool{}
	for _, s := range p.target.Services {
		if _, stops := p.stop[strings.ToLower(s.Config.Name)]; !stops {
			continue
		}
		for _, path := range s.Reads {
			read[bundle.FoldPath(path)] = true
		}
	}
	return read
}
