package objects

import (
	"bytes"
	"slices"
	"strings"

	"wmco/bundle"
)

// guess is what a field can hold, as far as a look at the text tells. A key that is given twice has two values.
type guess struct {
	values [][]byte
	// any says that the field may hold anything: its value is written in a way that only a parser understands.
	any bool
}

// maxGuesses is how many values of one field are told apart.
const maxGuesses = 8

// add notes a value of the field.
func (g *guess) add(value []byte, certain bool) {
	switch {
	case !certain || len(value) == 0 || len(g.values) == maxGuesses:
		g.any = true
	case !slices.ContainsFunc(g.values, func(v []byte) bool { return bytes.Equal(v, value) }):
		g.values = append(g.values, value)
	}
}

// merge adds what a second mapping under the same key says.
func (g *guess) merge(more guess, certain bool) {
	g.any = g.any || more.any || !certain
	for _, value := range more.values {
		g.add(value, true)
	}
}

// isAbsent tells whether the field is surely not there.
func (g guess) isAbsent() bool { return !g.any && len(g.values) == 0 }

// isUnclear tells whether the field may have more than one value.
func (g guess) isUnclear() bool { return g.any || len(g.values) > 1 }

// certain is the one value that the field can have, empty if there is none or more than one.
func (g guess) certain() string {
	if g.isUnclear() || g.isAbsent() {
		return ""
	}
	return string(g.values[0])
}

// admits tells whether any value that the field can hold passes the test.
func (g guess) admits(test func(value []byte) bool) bool {
	return g.any || slices.ContainsFunc(g.values, test)
}

// head is what tells an object from others: the part of it that is read without parsing.
type head struct {
	kind, apiVersion, name, namespace guess
	// sure says that the keys of the object were all understood; without it, the guesses are worth nothing.
	sure bool
	// items is the value of the key of that name.
	items items
	// inherited is what the object may leave out because its list says it.
	inherited typeMeta
}

// items is where the items of a list stand.
type items struct {
	form itemsForm
	// from and to are the offsets of the value in the segment's text.
	from, to int
}

// itemsForm says how the items of a list are written.
type itemsForm string

const (
	// noItems: the key is missing, or its value is empty.
	noItems itemsForm = ""
	// blockItems: a line with a dash for each.
	blockItems itemsForm = "block"
	// jsonItems: a JSON array.
	jsonItems itemsForm = "json"
	// otherItems: anything that only a parser understands.
	otherItems itemsForm = "other"
)

// inherit fills in what an item of a typed list may leave out: a ProxyList holds Proxies of its own apiVersion. A plain
// List says nothing about its items.
func (h head) inherit(list head) head {
	h.inherited = list.typeMeta().item()
	if h.inherited.kind != "" && h.kind.isAbsent() {
		h.kind.add([]byte(h.inherited.kind), true)
	}
	if h.inherited.apiVersion != "" && h.apiVersion.isAbsent() {
		h.apiVersion.add([]byte(h.inherited.apiVersion), true)
	}
	return h
}

// typeMeta is the kind and the apiVersion, as far as they are certain.
func (h head) typeMeta() typeMeta {
	return typeMeta{kind: h.kind.certain(), apiVersion: h.apiVersion.certain()}
}

// isUnclearList tells whether only a parser can say what the items are.
func (h head) isUnclearList() bool {
	return h.items.form != noItems && (h.kind.isUnclear() || h.isList() && h.apiVersion.isUnclear())
}

// isList tells whether the object is a list, or may be one.
func (h head) isList() bool {
	return h.items.form != noItems && h.kind.admits(func(kind []byte) bool { return bytes.HasSuffix(kind, []byte("List")) })
}

// mayMatch tells whether the object may be one that the want is for. What an object must have and lacks is no reason
// to pass it over: somebody meant it to be there.
func (h head) mayMatch(w Want) bool {
	return h.kind.admits(func(kind []byte) bool { return string(kind) == w.Kind }) &&
		(h.apiVersion.isAbsent() || h.apiVersion.admits(func(v []byte) bool { return groupOf(string(v)) == w.Group })) &&
		h.mayBeIn(w) &&
		(h.name.isAbsent() || h.name.admits(func(name []byte) bool { return w.admitsName(string(name)) }))
}

// mayBeIn tells whether the namespace of the object may be one that the want is for.
func (h head) mayBeIn(w Want) bool {
	return w.Namespace == "" || h.namespace.isAbsent() || h.namespace.admits(func(ns []byte) bool { return w.Namespace == string(ns) })
}

// ref names the object, as far as it is certain who it is.
func (h head) ref() bundle.Ref {
	return bundle.Ref{Kind: h.kind.certain(), Namespace: h.namespace.certain(), Name: h.name.certain()}
}

// tone says how much of a document may be repeated.
func (h head) tone() tone {
	if kind := h.kind.certain(); h.sure && kind != "" && kind != "Secret" {
		return frank
	}
	return discreet
}

// groupOf is the group of an apiVersion; the core group is empty.
func groupOf(apiVersion string) string {
	group, _ := splitVersion(apiVersion)
	return group
}

// apiVersion is group and version as an object says them.
func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

func splitVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}
