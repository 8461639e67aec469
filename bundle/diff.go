package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Action is what happens to an entry.
type Action string

const (
	// ActionAdd is a new entry.
	ActionAdd Action = "add"
	// ActionChange is an entry with other contents or settings.
	ActionChange Action = "change"
	// ActionRemove is an entry that no longer exists.
	ActionRemove Action = "remove"
)

// Change is the difference of one entry between two bundles.
type Change struct {
	Entry  EntryID `json:"entry"`
	Action Action  `json:"action"`
	// Impact is what the change costs.
	Impact Impact `json:"impact"`
	// Restarts are the services that the change restarts, by name.
	Restarts []string `json:"restarts,omitempty"`
	// Causes are the objects that made the change: of those that the entry comes from, the new, changed and removed
	// ones where they are known, otherwise all. For a removal they are those of the old side.
	Causes []Ref `json:"causes,omitempty"`
	// Secret reports whether Before and After show masked text.
	Secret bool `json:"secret,omitempty"`

	// Before and After are the entries of the layers, nil where there is none.
	Before, After any `json:"-"`
	// BeforeText and AfterText are what people may see of the contents.
	BeforeText, AfterText []byte `json:"-"`
}

// Kind is the kind of the entry.
func (c Change) Kind() EntryKind {
	kind, _, _ := strings.Cut(string(c.Entry), " ")
	return EntryKind(kind)
}

// Name is the entry's name without its kind.
func (c Change) Name() string {
	_, name, _ := strings.Cut(string(c.Entry), " ")
	return name
}

// Changes is all that differs between two bundles of one node.
type Changes []Change

// Impact returns the highest impact of all changes.
func (c Changes) Impact() Impact {
	highest := ImpactNone
	for _, x := range c {
		if x.Impact.Rank() > highest.Rank() {
			highest = x.Impact
		}
	}
	return highest
}

// Restarts returns all services that restart, by name.
func (c Changes) Restarts() []string {
	all := map[string]bool{}
	for _, x := range c {
		for _, s := range x.Restarts {
			all[s] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Diff compares two bundles entry by entry and returns the changes with the highest impact first. The layer of an entry
// does not matter.
func Diff(before, after Bundle) Changes {
	old, now := before.entriesByID(), after.entriesByID()
	blame := blame{before: before.Provenance.objectDigests(), after: after.Provenance.objectDigests()}
	var changes Changes
	for id, a := range now {
		b, had := old[id]
		switch {
		case !had:
			changes = append(changes, after.newChange(id, ActionAdd, entry{}, a))
		case !b.sameContent(a):
			changes = append(changes, after.newChange(id, ActionChange, b, a))
		}
	}
	for id, b := range old {
		if _, has := now[id]; !has {
			changes = append(changes, before.newChange(id, ActionRemove, b, entry{}))
		}
	}
	for i, c := range changes {
		changes[i].Causes = blame.changedCauses(before.Provenance[c.Entry], after.Provenance[c.Entry])
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Impact.Rank(), a.Impact.Rank()), cmp.Compare(a.Entry, b.Entry))
	})
	return changes
}

// name identifies an object.
type name struct{ group, kind, namespace, name string }

func (r Ref) name() name { return name{r.Group, r.Kind, r.Namespace, r.Name} }

// objectDigests returns the digests of all objects that a bundle comes from. A reference without one says nothing about its object.
func (p Provenance) objectDigests() map[name]Digest {
	all := map[name]Digest{}
	for _, refs := range p {
		for _, r := range refs {
			all[r.name()] = max(all[r.name()], r.Digest)
		}
	}
	return all
}

// blame knows which objects differ between the sides.
type blame struct{ before, after map[name]Digest }

// changedCauses returns the objects of an entry that are new, changed or removed. Where none is, for example because
// the program is a newer one, it returns all objects that the entry comes from.
func (b blame) changedCauses(before, after []Ref) []Ref {
	var list, all []Ref
	seen := map[name]bool{}
	for _, r := range slices.Concat(after, before) {
		if seen[r.name()] {
			continue
		}
		seen[r.name()] = true
		all = append(all, r)
		old, had := b.before[r.name()]
		now, has := b.after[r.name()]
		if had != has || old != now {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// entry is one entry of a bundle with what a comparison needs.
type entry struct {
	// value is the entry without its contents.
	value any
	// content is nil for entries without contents.
	content *Content
	impact  Impact
}

// sameContent compares the contents on the node. Digests of secrets are not compared: previews mask them, and two
// keys give two digests of one secret. Where one side has only the preview, the previews are compared.
func (e entry) sameContent(other entry) bool {
	if !reflect.DeepEqual(e.value, other.value) {
		return false
	}
	if e.content == nil || other.content == nil {
		return e.content == other.content
	}
	if e.content.Data == nil || other.content.Data == nil {
		return bytes.Equal(e.content.Shown(), other.content.Shown())
	}
	return bytes.Equal(e.content.Data, other.content.Data)
}

func (e entry) shownText() []byte {
	if e.content == nil {
		return nil
	}
	return e.content.Shown()
}

func (b Bundle) newChange(id EntryID, action Action, before, after entry) Change {
	c := Change{
		Entry: id, Action: action, Before: before.value, After: after.value, BeforeText: before.shownText(),
		AfterText: after.shownText(),
	}
	c.Impact = after.impact
	if action == ActionRemove || before.impact.Rank() > after.impact.Rank() && before.value != nil {
		c.Impact = before.impact
	}
	c.Secret = before.content != nil && before.content.Secret() || after.content != nil && after.content.Secret()
	if !restartsService(before.value, after.value) {
		c.Impact = ImpactNone
	}
	if c.Impact.Rank() >= ImpactRestart.Rank() {
		c.Restarts = b.restartsOf(c)
	}
	return c
}

// restartsService reports whether a change of a service's definition restarts it: only another command or environment
// does. Recovery, dependencies, probes and the limits of logs that others rotate are read by those who act on them. It
// is true for everything that is not a service.
func restartsService(before, after any) bool {
	old, isService := before.(Service)
	now, stays := after.(Service)
	return !isService || !stays || !slices.Equal(old.Argv, now.Argv) || old.Environment != now.Environment
}

// restartsOf returns the services that a change of an entry restarts: the service itself, those that read the file or
// program, those that use the environment. A service that is removed is stopped and not restarted.
func (b Bundle) restartsOf(c Change) []string {
	if c.Kind() == KindService && c.Action != ActionRemove {
		return []string{c.Name()}
	}
	var names []string
	for _, s := range b.Services() {
		reads := (c.Kind() == KindFile || c.Kind() == KindPayload) && slices.Contains(s.Reads, c.Name())
		if reads || c.Kind() == KindEnvironment && s.Environment == c.Name() {
			names = append(names, s.Name)
		}
	}
	return names
}

// entriesByID returns all entries of both layers by ID.
func (b Bundle) entriesByID() map[EntryID]entry {
	all := map[EntryID]entry{}
	for _, k := range kinds {
		k.addEntries(&b.Cluster, all)
		k.addEntries(&b.Node, all)
	}
	return all
}

func (f File) withContent() (File, *Content) {
	content := f.Content
	f.Content, f.Digest, f.Size = Content{}, "", 0
	return f, &content
}

// withContent returns the value of a variable as its content, so that a secret one is compared and shown like a secret
// file.
func (v Variable) withContent() (Variable, *Content) {
	content := v.Content
	if !v.Secret() {
		content = Content{Data: []byte(v.Value + "\n")}
	}
	return Variable{Name: v.Name, Impact: v.Impact}, &content
}

// withContent returns all variables of an environment as one content, one line each.
func (e Environment) withContent() (Environment, *Content) {
	content := Content{Data: []byte{}}
	shown, known := []byte{}, true
	for _, v := range e.Variables {
		_, value := v.withContent()
		known = known && value.Data != nil
		content.Data = fmt.Appendf(content.Data, "%s=%s\n", v.Name, bytes.TrimSuffix(value.Data, []byte("\n")))
		shown = fmt.Appendf(shown, "%s=%s\n", v.Name, bytes.TrimSuffix(value.Shown(), []byte("\n")))
	}
	if slices.ContainsFunc(e.Variables, Variable.Secret) {
		content.Preview = shown
	}
	if !known {
		content.Data = nil
	}
	return Environment{Name: e.Name}, &content
}
