package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// Circumstances are what a plan depends on besides target and observation.
type Circumstances struct {
	// Owned tells which entries are ours already.
	Owned map[string]bool
	// Restart are services that must be started anew though nothing of theirs differs: an earlier run was cut.
	Restart []string
	// Stale is what belongs to another cluster.
	Stale Stale
	// Shadows are variables that services get as empty.
	Shadows []string
	// Networks are the HNS networks that are there.
	Networks []bundle.HNSNetwork
	// Self is the service that this program runs as: it is configured, and neither stopped nor started.
	Self string
}

// planner collects the steps of one plan.
type planner struct {
	target *Target
	seen   Observed
	c      Circumstances

	early, removes, inWay, late, stopped []Step
	// changed are the paths that steps write or remove, folded, with their impact.
	changed map[string]bundle.Impact
	// running are the paths that running services read, folded.
	running map[string]bool
	stop    map[string]cause // services to stop, by name in lower case
	put     []Step
	plan    Plan
}

// cause is why a service restarts.
type cause struct {
	reason Reason
	impact bundle.Impact
}

func Make(wanted *Target, seen Observed, c Circumstances) Plan {
	t := *wanted
	t.Services = slices.Clone(t.Services)
	seen.Services = maps.Clone(seen.Services)
	p := &planner{target: &t, seen: seen, c: c, changed: map[string]bundle.Impact{}, stop: map[string]cause{}}
	p.settings()
	p.folders()
	p.contents()
	p.unknown()
	p.removals()
	p.services()
	p.order()
	p.plan.Foreign, p.plan.Leftovers = seen.foreign(wanted)
	p.plan.Foreign = slices.DeleteFunc(p.plan.Foreign, p.goes)
	return p.plan
}

// goes tells whether the plan removes a path.
func (p *planner) goes(path string) bool {
	return slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Verb == VerbRemove && fileName(s.File.Path) == fileName(path) })
}

func (p *planner) adopt(id bundle.EntryID, name string) {
	if !p.c.Owned[name] {
		p.plan.Adopt = append(p.plan.Adopt, id)
	}
}

func (p *planner) settings() {
	for _, s := range p.target.Settings {
		have := p.seen.Settings[s.ID()]
		if have.Unavailable {
			continue
		}
		same := have.Present == s.Present && (!s.Present || s.Value.Is(have.Value))
		switch {
		case same && s.Present && have.Pending:
			p.plan.Pending = append(p.plan.Pending, s.ID())
			p.plan.Reboot = true
		case same && s.Present:
			p.adopt(s.ID(), string(s.ID()))
		case same:
		default:
			p.set(s, have)
		}
	}
}

func (p *planner) set(s WantedSetting, have Setting) {
	a := Action{Verb: VerbSet, Entry: s.ID(), Reason: ReasonAbsent, Impact: s.Impact}
	switch {
	case !s.Present:
		a.Verb, a.Reason = VerbUnset, ReasonUnwanted
	case have.Present:
		a.Reason = ReasonDiffers
	}
	if s.Present && !s.Value.Known && s.Value.Content.SHA256 == "" {
		p.plan.Missing = append(p.plan.Missing, Missing{Digest: s.Value.digest})
	}
	if s.Present && s.Impact == bundle.ImpactReboot {
		p.plan.Reboot = true
	}
	if s.Kind == bundle.KindEndpoint {
		p.setEndpoint(Step{Action: a, Setting: s})
		return
	}
	p.early = append(p.early, Step{Action: a, Setting: s})
}

// setEndpoint waits for the endpoint's network, which a service makes, and takes an endpoint away when nobody uses it.
func (p *planner) setEndpoint(s Step) {
	network, _, _ := strings.Cut(s.Setting.Value.Text, "/")
	isThere := func(n bundle.HNSNetwork) bool { return n.Name == network }
	switch {
	case !s.Setting.Present:
		p.stopped = append(p.stopped, s)
	case slices.ContainsFunc(p.c.Networks, isThere):
		p.early = append(p.early, s)
	default:
		p.plan.Waiting = append(p.plan.Waiting, s.Entry)
	}
}

// folders makes them, the outer ones first; the target has them in this order.
func (p *planner) folders() {
	for _, f := range p.target.Files {
		if f.Kind != FileDirectory {
			continue
		}
		have := p.seen.File(f.Path)
		a := Action{Verb: VerbMake, Entry: f.ID, Reason: ReasonAbsent, Impact: f.Impact}
		switch have.Kind {
		case FileDirectory:
			if !wrongAccess(f, have) {
				p.adopt(f.ID, fileName(f.Path))
				continue
			}
			a.Reason = ReasonAccess
		case FileAbsent:
		case FileRegular, FileOther:
			p.clearWay(have.FileInfo)
			a.Reason = ReasonInWay
		}
		p.early = append(p.early, Step{Action: a, File: f})
	}
}

func wrongAccess(f WantedFile, have ObservedFile) bool {
	return f.Access != "" && have.Access != "" && f.Access != have.Access
}

func (p *planner) contents() {
	for _, f := range p.target.Files {
		if f.Kind != FileRegular {
			continue
		}
		if f.Digest == "" {
			continue // a payload that is only referred to: nobody knows what it should be
		}
		have := p.seen.File(f.Path)
		a := Action{Verb: VerbWrite, Entry: f.ID, Reason: ReasonAbsent, Impact: f.Impact, Size: max(f.Content.Size, 0)}
		switch have.Kind {
		case FileRegular:
			same := f.Content.SHA256 != "" && f.Content.SHA256 == have.SHA256
			if same && !wrongAccess(f, have) {
				p.adopt(f.ID, fileName(f.Path))
				continue
			}
			a.Reason = ReasonDiffers
			if same {
				a.Reason, a.Impact = ReasonAccess, bundle.ImpactNone
			}
		case FileAbsent:
		case FileDirectory, FileOther:
			p.clearWay(have.FileInfo)
			a.Reason = ReasonInWay
		}
		if !p.readByRunning(f.Path) {
			a.Impact = bundle.ImpactNone
		}
		if f.Content.SHA256 == "" {
			p.plan.Missing = append(p.plan.Missing, Missing{Digest: f.Digest})
		}
		p.changed[bundle.FoldPath(f.Path)] = a.Impact
		p.late = append(p.late, Step{Action: a, File: f})
	}
}

// readByRunning tells whether a service that runs reads the path: a change of what nobody has read costs nobody anything.
func (p *planner) readByRunning(path string) bool {
	key := bundle.FoldPath(path)
	if p.running == nil {
		p.running = map[string]bool{}
		for _, s := range p.target.Services {
			if p.seen.Service(s.Config.Name).Status != ServiceRunning {
				continue
			}
			for _, read := range s.reads {
				p.running[bundle.FoldPath(read)] = true
			}
		}
	}
	return p.running[key]
}

// clearWay removes what stands where something else is wanted, with all that is in it.
func (p *planner) clearWay(f FileInfo) {
	for _, child := range p.seen.Folders[bundle.FoldPath(f.Path)] {
		p.clearWay(child)
	}
	p.inWay = append(p.inWay, removal(f, ReasonInWay))
}

func removal(f FileInfo, why Reason) Step {
	kind := bundle.KindFile
	if f.Kind == FileDirectory {
		kind = bundle.KindDirectory
	}
	item := WantedFile{ID: kind.ID(f.Path), Path: f.Path, Kind: FileAbsent, Reason: why}
	return Step{Action: Action{Verb: VerbRemove, Entry: item.ID, Reason: why, Impact: bundle.ImpactNone}, File: item}
}

// unknown removes what stands in exclusive folders and is not of the bundle.
func (p *planner) unknown() {
	wanted := p.target.Names()
	for _, folder := range slices.Sorted(maps.Keys(p.seen.Folders)) {
		if !p.target.Exclusive[folder] && !p.target.insideExclusive(folder) {
			continue
		}
		for _, f := range p.seen.Folders[folder] {
			if !wanted[fileName(f.Path)] {
				why := ReasonUnknown
				if p.c.Owned[fileName(f.Path)] {
					why = ReasonUnwanted
				}
				p.removes = append(p.removes, removal(f, why))
			}
		}
	}
}

// removals removes what we own and nobody wants any more. A folder goes if nothing else is in it.
func (p *planner) removals() {
	going := map[string]bool{}
	for _, s := range p.removes {
		going[bundle.FoldPath(s.File.Path)] = true
	}
	items := slices.DeleteFunc(slices.Clone(p.target.Files), func(f WantedFile) bool { return f.Kind != FileAbsent })
	slices.SortStableFunc(items, func(a, b WantedFile) int { return cmp.Compare(depth(b.Path), depth(a.Path)) })
	for _, f := range items {
		key := bundle.FoldPath(f.Path)
		have := p.seen.Files[key]
		if have.Kind == FileAbsent || going[key] {
			continue
		}
		if have.Kind == FileDirectory && !p.emptied(key, going) {
			continue
		}
		going[key] = true
		s := removal(have.FileInfo, f.Reason)
		s.Entry, s.File.ID, s.Impact = f.ID, f.ID, cmp.Or(f.Impact, bundle.ImpactNone)
		p.changed[key] = s.Impact
		p.removes = append(p.removes, s)
	}
	slices.SortStableFunc(p.removes, func(a, b Step) int { return cmp.Compare(depth(b.File.Path), depth(a.File.Path)) })
}

// depth is how many folders a path is in.
func depth(path string) int { return strings.Count(path, `\`) }

// emptied tells whether nothing stays in a folder. Leftovers are swept before.
func (p *planner) emptied(folder string, going map[string]bool) bool {
	return !slices.ContainsFunc(p.seen.Folders[folder], func(f FileInfo) bool { return !going[bundle.FoldPath(f.Path)] && !Leftover(f.Path) })
}

// order puts the steps into theirs.
func (p *planner) order() {
	read := p.readByStopped()
	var quiet, late []Step
	for _, s := range p.late {
		if read[bundle.FoldPath(s.File.Path)] && s.Reason != ReasonAbsent {
			late = append(late, s)
		} else {
			quiet = append(quiet, s)
		}
	}
	deletes, puts := partition(p.put, func(s Step) bool { return s.Verb == VerbDelete })
	files, folders := partition(p.removes, func(s Step) bool { return s.File.ID != bundle.KindDirectory.ID(s.File.Path) })
	p.plan.Steps = slices.Concat(
		p.inWay, p.early, quiet, p.stops(), deletes, p.clears(), p.stopped, late, puts, files, p.starts(), folders)
}

func partition(steps []Step, first func(Step) bool) (a, b []Step) {
	for _, s := range steps {
		if first(s) {
			a = append(a, s)
		} else {
			b = append(b, s)
		}
	}
	return a, b
}

func (p *planner) clears() []Step {
	var list []Step
	for _, path := range p.c.Stale.Paths {
		list = append(list, Step{
			Action: Action{Verb: VerbClear, Entry: bundle.KindState.ID(path), Reason: ReasonStale, Impact: bundle.ImpactNone},
			File:   WantedFile{Path: path},
		})
	}
	for _, name := range p.c.Stale.Networks {
		s := WantedSetting{Kind: bundle.KindNetwork, Name: name}
		list = append(list, Step{
			Action:  Action{Verb: VerbUnset, Entry: s.ID(), Reason: ReasonStale, Impact: bundle.ImpactDrain}, // its pods lose it
			Setting: s,
		})
	}
	return list
}

// readByStopped are the paths that services read that stop, folded. They change while nobody reads them.
func (p *planner) readByStopped() map[string]bool {
	read := map[string]bool{}
	for _, s := range p.target.Services {
		if _, stops := p.stop[strings.ToLower(s.Config.Name)]; !stops {
			continue
		}
		for _, path := range s.reads {
			read[bundle.FoldPath(path)] = true
		}
	}
	return read
}
