package applier

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// plan is what brings a host from what was observed to a target, in order, and nothing else.
//
//	folders, settings, files that nobody reads yet              while everything runs
//	stop          services that change, that read what changes, that depend on those: dependents first
//	delete, clear, unset endpoints, write, put, remove
//	start         in the order of dependencies, each service once
//	folders that are empty now
type plan struct {
	steps []step
	// adopt are entries that are right and that we did not own.
	adopt []bundle.EntryID
	// pending are settings that come into force with the next boot.
	pending []bundle.EntryID
	// reboot tells that services wait for the boot: they are not started before it.
	reboot bool
	// missing are contents that steps need and nobody knows or has.
	missing []Missing
	// waiting are endpoints whose network is not there yet.
	waiting []bundle.EntryID
	// foreign are files that are left alone, leftovers what cuts left behind.
	foreign, leftovers []string
}

// step is an action with what it needs.
type step struct {
	Action
	file    fileItem
	setting settingItem
	service serviceItem
}

// circumstances are what a plan depends on besides target and observation.
type circumstances struct {
	// owned tells which entries are ours already.
	owned map[string]bool
	// restart are services that must be started anew though nothing of theirs differs: an earlier run was cut.
	restart []string
	// stale is what belongs to another cluster.
	stale stale
	// shadows are variables that services get as empty.
	shadows []string
	// networks are the HNS networks that are there.
	networks []bundle.HNSNetwork
	// self is the service that this program runs as: it is configured, and neither stopped nor started.
	self string
}

// planner collects the steps of one plan.
type planner struct {
	target *target
	seen   observed
	c      circumstances

	early, removes, inWay, late, stopped []step
	// changed are the paths that steps write or remove, folded, with their impact.
	changed map[string]bundle.Impact
	// running are the paths that running services read, folded.
	running map[string]bool
	stop    map[string]cause // services to stop, by name in lower case
	put     []step
	plan    plan
}

// cause is why a service restarts.
type cause struct {
	reason Reason
	impact bundle.Impact
}

func makePlan(wanted *target, seen observed, c circumstances) plan {
	t := *wanted
	t.services = slices.Clone(t.services)
	seen.services = maps.Clone(seen.services)
	p := &planner{target: &t, seen: seen, c: c, changed: map[string]bundle.Impact{}, stop: map[string]cause{}}
	p.settings()
	p.folders()
	p.contents()
	p.unknown()
	p.removals()
	p.services()
	p.order()
	p.plan.foreign, p.plan.leftovers = seen.foreign(wanted)
	p.plan.foreign = slices.DeleteFunc(p.plan.foreign, p.goes)
	return p.plan
}

// goes tells whether the plan removes a path.
func (p *planner) goes(path string) bool {
	return slices.ContainsFunc(p.plan.steps, func(s step) bool { return s.Verb == VerbRemove && fileName(s.file.path) == fileName(path) })
}

func (p *planner) adopt(id bundle.EntryID, name string) {
	if !p.c.owned[name] {
		p.plan.adopt = append(p.plan.adopt, id)
	}
}

func (p *planner) settings() {
	for _, s := range p.target.settings {
		have := p.seen.settings[s.ID()]
		if have.Unavailable {
			continue
		}
		same := have.Present == s.Present && (!s.Present || s.value.is(have.Value))
		switch {
		case same && s.Present && have.Pending:
			p.plan.pending = append(p.plan.pending, s.ID())
			p.plan.reboot = true
		case same && s.Present:
			p.adopt(s.ID(), string(s.ID()))
		case same:
		default:
			p.set(s, have)
		}
	}
}

func (p *planner) set(s settingItem, have Setting) {
	a := Action{Verb: VerbSet, Entry: s.ID(), Reason: ReasonAbsent, Impact: s.impact}
	switch {
	case !s.Present:
		a.Verb, a.Reason = VerbUnset, ReasonUnwanted
	case have.Present:
		a.Reason = ReasonDiffers
	}
	if s.Present && !s.value.known && s.value.content.SHA256 == "" {
		p.plan.missing = append(p.plan.missing, Missing{Digest: s.value.digest})
	}
	if s.Present && s.impact == bundle.ImpactReboot {
		p.plan.reboot = true
	}
	if s.Kind == bundle.KindEndpoint {
		p.setEndpoint(step{Action: a, setting: s})
		return
	}
	p.early = append(p.early, step{Action: a, setting: s})
}

// setEndpoint waits for the endpoint's network, which a service makes, and takes an endpoint away when nobody uses it.
func (p *planner) setEndpoint(s step) {
	network, _, _ := strings.Cut(s.setting.Value, "/")
	isThere := func(n bundle.HNSNetwork) bool { return n.Name == network }
	switch {
	case !s.setting.Present:
		p.stopped = append(p.stopped, s)
	case slices.ContainsFunc(p.c.networks, isThere):
		p.early = append(p.early, s)
	default:
		p.plan.waiting = append(p.plan.waiting, s.Entry)
	}
}

// folders makes them, the outer ones first; the target has them in this order.
func (p *planner) folders() {
	for _, f := range p.target.files {
		if f.kind != FileDirectory {
			continue
		}
		have := p.seen.file(f.path)
		a := Action{Verb: VerbMake, Entry: f.id, Reason: ReasonAbsent, Impact: f.impact}
		switch have.Kind {
		case FileDirectory:
			if !wrongAccess(f, have) {
				p.adopt(f.id, fileName(f.path))
				continue
			}
			a.Reason = ReasonAccess
		case FileAbsent:
		case FileRegular, FileOther:
			p.clearWay(have.FileInfo)
			a.Reason = ReasonInWay
		}
		p.early = append(p.early, step{Action: a, file: f})
	}
}

func wrongAccess(f fileItem, have fileSeen) bool {
	return f.access != "" && have.Access != "" && f.access != have.Access
}

func (p *planner) contents() {
	for _, f := range p.target.files {
		if f.kind != FileRegular {
			continue
		}
		if f.digest == "" {
			continue // a payload that is only referred to: nobody knows what it should be
		}
		have := p.seen.file(f.path)
		a := Action{Verb: VerbWrite, Entry: f.id, Reason: ReasonAbsent, Impact: f.impact, Size: max(f.content.Size, 0)}
		switch have.Kind {
		case FileRegular:
			same := f.content.SHA256 != "" && f.content.SHA256 == have.sha256
			if same && !wrongAccess(f, have) {
				p.adopt(f.id, fileName(f.path))
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
		if !p.readByRunning(f.path) {
			a.Impact = bundle.ImpactNone
		}
		if f.content.SHA256 == "" {
			p.plan.missing = append(p.plan.missing, Missing{Digest: f.digest})
		}
		p.changed[bundle.FoldPath(f.path)] = a.Impact
		p.late = append(p.late, step{Action: a, file: f})
	}
}

// readByRunning tells whether a service that runs reads the path: a change of what nobody has read costs nobody anything.
func (p *planner) readByRunning(path string) bool {
	key := bundle.FoldPath(path)
	if p.running == nil {
		p.running = map[string]bool{}
		for _, s := range p.target.services {
			if p.seen.service(s.config.Name).Status != ServiceRunning {
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
	for _, child := range p.seen.folders[bundle.FoldPath(f.Path)] {
		p.clearWay(child)
	}
	p.inWay = append(p.inWay, removal(f, ReasonInWay))
}

func removal(f FileInfo, why Reason) step {
	kind := bundle.KindFile
	if f.Kind == FileDirectory {
		kind = bundle.KindDirectory
	}
	item := fileItem{id: kind.ID(f.Path), path: f.Path, kind: FileAbsent, reason: why}
	return step{Action: Action{Verb: VerbRemove, Entry: item.id, Reason: why, Impact: bundle.ImpactNone}, file: item}
}

// unknown removes what stands in exclusive folders and is not of the bundle.
func (p *planner) unknown() {
	wanted := p.target.names()
	for _, folder := range slices.Sorted(maps.Keys(p.seen.folders)) {
		if !p.target.exclusive[folder] && !p.target.insideExclusive(folder) {
			continue
		}
		for _, f := range p.seen.folders[folder] {
			if !wanted[fileName(f.Path)] {
				why := ReasonUnknown
				if p.c.owned[fileName(f.Path)] {
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
		going[bundle.FoldPath(s.file.path)] = true
	}
	items := slices.DeleteFunc(slices.Clone(p.target.files), func(f fileItem) bool { return f.kind != FileAbsent })
	slices.SortStableFunc(items, func(a, b fileItem) int { return cmp.Compare(depth(b.path), depth(a.path)) })
	for _, f := range items {
		key := bundle.FoldPath(f.path)
		have := p.seen.files[key]
		if have.Kind == FileAbsent || going[key] {
			continue
		}
		if have.Kind == FileDirectory && !p.emptied(key, going) {
			continue
		}
		going[key] = true
		s := removal(have.FileInfo, f.reason)
		s.Entry, s.file.id, s.Impact = f.id, f.id, cmp.Or(f.impact, bundle.ImpactNone)
		p.changed[key] = s.Impact
		p.removes = append(p.removes, s)
	}
	slices.SortStableFunc(p.removes, func(a, b step) int { return cmp.Compare(depth(b.file.path), depth(a.file.path)) })
}

// depth is how many folders a path is in.
func depth(path string) int { return strings.Count(path, `\`) }

// emptied tells whether nothing stays in a folder. Leftovers are swept before.
func (p *planner) emptied(folder string, going map[string]bool) bool {
	return !slices.ContainsFunc(p.seen.folders[folder], func(f FileInfo) bool { return !going[bundle.FoldPath(f.Path)] && !Leftover(f.Path) })
}

// order puts the steps into theirs.
func (p *planner) order() {
	read := p.readByStopped()
	var quiet, late []step
	for _, s := range p.late {
		if read[bundle.FoldPath(s.file.path)] && s.Reason != ReasonAbsent {
			late = append(late, s)
		} else {
			quiet = append(quiet, s)
		}
	}
	deletes, puts := partition(p.put, func(s step) bool { return s.Verb == VerbDelete })
	files, folders := partition(p.removes, func(s step) bool { return s.file.id != bundle.KindDirectory.ID(s.file.path) })
	p.plan.steps = slices.Concat(
		p.inWay, p.early, quiet, p.stops(), deletes, p.clears(), p.stopped, late, puts, files, p.starts(), folders)
}

func partition(steps []step, first func(step) bool) (a, b []step) {
	for _, s := range steps {
		if first(s) {
			a = append(a, s)
		} else {
			b = append(b, s)
		}
	}
	return a, b
}

func (p *planner) clears() []step {
	var list []step
	for _, path := range p.c.stale.Paths {
		list = append(list, step{
			Action: Action{Verb: VerbClear, Entry: bundle.KindState.ID(path), Reason: ReasonStale, Impact: bundle.ImpactNone},
			file:   fileItem{path: path},
		})
	}
	for _, name := range p.c.stale.Networks {
		s := Setting{Kind: bundle.KindNetwork, Name: name}
		list = append(list, step{
			Action:  Action{Verb: VerbUnset, Entry: s.ID(), Reason: ReasonStale, Impact: bundle.ImpactDrain}, // its pods lose it
			setting: settingItem{Setting: s},
		})
	}
	return list
}

// readByStopped are the paths that services read that stop, folded. They change while nobody reads them.
func (p *planner) readByStopped() map[string]bool {
	read := map[string]bool{}
	for _, s := range p.target.services {
		if _, stops := p.stop[strings.ToLower(s.config.Name)]; !stops {
			continue
		}
		for _, path := range s.reads {
			read[bundle.FoldPath(path)] = true
		}
	}
	return read
}

// readers are the services that are stopped and started for something that is written before they stop.
func (p plan) readers() []string {
	written := map[string]bool{}
	var names []string
	for _, s := range p.steps {
		switch {
		case s.Verb == VerbWrite:
			written[bundle.FoldPath(s.file.path)] = true
		case s.Verb == VerbStop && s.service.run && slices.ContainsFunc(s.service.reads, func(path string) bool { return written[bundle.FoldPath(path)] }):
			names = append(names, s.service.config.Name)
		}
	}
	return names
}
