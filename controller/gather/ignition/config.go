package ignition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// maxConfig is the largest size of a configuration, in bytes of JSON. An API server accepts objects of up to 3 MiB.
const maxConfig = 16 << 20

// Config is the part of a configuration that is read.
type Config struct {
	Version string
	Files   []File
	Units   []Unit
	// Unknown are the fields that the configuration's version does not have, in the objects that are read:
	// `storage.files[0].content`. Ignition ignores them with a warning.
	Unknown []string
}

// File is one of storage.files.
type File struct {
	// Field is its path in the configuration, such as `storage.files[3]`.
	Field, Path string
	Contents    Resource
	// Appends reports whether the file appends to a file of the operating system's image.
	Appends bool
}

// Unit is one of systemd.units.
type Unit struct {
	Field, Name, Contents string
	Dropins               []Dropin
}

// Dropin is one of a unit's drop-ins.
type Dropin struct{ Name, Contents string }

// Problem is a reason to refuse a configuration. No message quotes contents, which may be secret.
type Problem struct {
	// Field is the path in the configuration; empty for the whole.
	Field, Message string
}

// version holds the fields that a version of the specification adds: of the whole, of storage and of the contents of a
// file.
type version struct {
	number                       string
	sections, storage, resources []string
}

// versions are the supported versions, in order.
var versions = []version{
	{
		number: "3.0.0", sections: []string{"ignition", "passwd", "storage", "systemd"},
		storage: []string{
			"directories", "disks", "files", "filesystems", "links", "raid",
		}, resources: []string{"compression", "source", "verification"},
	},
	{number: "3.1.0", resources: []string{"httpHeaders"}},
	{number: "3.2.0", storage: []string{"luks"}},
	{number: "3.3.0", sections: []string{"kernelArguments"}},
	{number: "3.4.0"},
	{number: "3.5.0"},
	{number: "3.6.0"},
}

// ParseConfig reads a configuration and returns all its problems.
func ParseConfig(data []byte) (Config, []Problem) {
	if len(data) > maxConfig {
		return Config{}, []Problem{{Message: fmt.Sprintf(
			"the configuration has %d bytes; at most %d are read", len(data), maxConfig,
		)}}
	}
	var root any
	strict, err := kjson.UnmarshalStrict(data, &root)
	if err != nil {
		return Config{}, []Problem{{Message: syntaxMessage(data, err)}}
	}
	r := reader{}
	for _, err := range strict {
		r.addProblem("", err.Error())
	}
	return r.readConfig(root), r.problems
}

// syntaxMessage has the line and column of a syntax error, both counted from 1.
func syntaxMessage(data []byte, err error) string {
	isSyntax, offset := kjson.SyntaxErrorOffset(err)
	if !isSyntax {
		return "the configuration is not JSON: " + err.Error()
	}
	before := string(data[:min(int(offset), len(data))])
	line, column := 1+strings.Count(before, "\n"), len(before)-(strings.LastIndex(before, "\n")+1)
	return fmt.Sprintf("line %d, column %d: the configuration is not JSON: %v", line, max(column, 1), err)
}

func (r *reader) readConfig(root any) Config {
	top := r.readObject("", root)
	c := Config{Version: r.readVersion(top["ignition"])}
	if len(r.problems) > 0 {
		return c
	}
	r.collectUnknownFields("", top, r.sections)
	storage := r.readObject("storage", top["storage"])
	r.collectUnknownFields("storage", storage, r.storage)
	for i, v := range r.readList("storage.files", storage["files"]) {
		c.Files = append(c.Files, r.readFile(elementPath("storage.files", i), v))
	}
	systemd := r.readObject("systemd", top["systemd"])
	r.collectUnknownFields("systemd", systemd, []string{"units"})
	for i, v := range r.readList("systemd.units", systemd["units"]) {
		c.Units = append(c.Units, r.readUnit(elementPath("systemd.units", i), v))
	}
	r.refuseDuplicates(c)
	slices.Sort(r.unknown)
	c.Unknown = r.unknown
	return c
}

// readVersion reads the configuration's version and selects its fields.
func (r *reader) readVersion(v any) string {
	const field = "ignition.version"
	number := r.readRequiredText(field, r.readObject("ignition", v)["version"])
	for _, known := range versions {
		r.sections, r.storage = append(r.sections, known.sections...), append(r.storage, known.storage...)
		r.resources = append(r.resources, known.resources...)
		if known.number == number {
			return number
		}
	}
	if number != "" {
		r.addProblem(
			field,
			fmt.Sprintf("version %q is not supported; use %s to %s", number, versions[0].number, versions[len(versions)-1].number),
		)
	}
	return number
}

func (r *reader) readFile(field string, v any) File {
	o := r.readObject(field, v)
	r.collectUnknownFields(field, o, []string{"append", "contents", "group", "mode", "overwrite", "path", "user"})
	f := File{
		Field: field, Path: r.readRequiredText(field+".path", o["path"]), Contents: r.readResource(field+".contents", o["contents"]),
		Appends: len(r.readList(field+".append", o["append"])) > 0,
	}
	if f.Path != "" && !path.IsAbs(f.Path) {
		r.addProblem(field+".path", fmt.Sprintf("%q is not an absolute path", f.Path))
	}
	return f
}

func (r *reader) readResource(field string, v any) Resource {
	o := r.readObject(field, v)
	r.collectUnknownFields(field, o, r.resources)
	verification := r.readObject(field+".verification", o["verification"])
	r.collectUnknownFields(field+".verification", verification, []string{"hash"})
	return Resource{
		Source: r.readText(field+".source", o["source"]), Compression: r.readText(field+".compression", o["compression"]),
		Hash: r.readText(field+".verification.hash", verification["hash"]),
	}
}

func (r *reader) readUnit(field string, v any) Unit {
	o := r.readObject(field, v)
	r.collectUnknownFields(field, o, []string{"contents", "dropins", "enabled", "mask", "name"})
	u := Unit{
		Field: field, Name: r.readRequiredText(field+".name", o["name"]),
		Contents: r.readText(field+".contents", o["contents"]),
	}
	for i, v := range r.readList(field+".dropins", o["dropins"]) {
		at := elementPath(field+".dropins", i)
		d := r.readObject(at, v)
		r.collectUnknownFields(at, d, []string{"contents", "name"})
		u.Dropins = append(u.Dropins, Dropin{
			Name: r.readRequiredText(at+".name", d["name"]), Contents: r.readText(at+".contents", d["contents"]),
		})
	}
	return u
}

// refuseDuplicates refuses duplicates: readers differ in which one they use.
func (r *reader) refuseDuplicates(c Config) {
	paths, units := map[string]string{}, map[string]string{}
	for _, f := range c.Files {
		r.refuseRepeated(paths, f.Field+".path", f.Path)
	}
	for _, u := range c.Units {
		r.refuseRepeated(units, u.Field+".name", u.Name)
		dropins := map[string]string{}
		for i, d := range u.Dropins {
			r.refuseRepeated(dropins, elementPath(u.Field+".dropins", i)+".name", d.Name)
		}
	}
}

func (r *reader) refuseRepeated(seen map[string]string, field, name string) {
	if first, ok := seen[name]; ok && name != "" {
		r.addProblem(field, fmt.Sprintf("%q is also %s", name, first))
		return
	}
	seen[name] = field
}
