package payloadbuild

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"wmco/payload/store"
)

// wholeBill is the name of the bill of materials of all executables together.
const wholeBill = "payload.cdx.json"

// billOf returns the name of the bill of materials of one executable.
func billOf(name string) string { return name + ".cdx.json" }

// specVersion is the version of CycloneDX. It is not the newest, so that scanners can read it.
const specVersion = cyclonedx.SpecVersion1_6

// bills writes a bill of materials for each executable and one for all. They come from the build information and have no
// time and no place: the same executables have the same bills.
func (o Options) bills(stamps []stamp) error {
	whole := newBill(&cyclonedx.Component{BOMRef: "payload", Type: cyclonedx.ComponentTypeApplication, Name: "wmco payload", Version: o.Version})
	for _, s := range stamps {
		info, err := s.info()
		if err != nil {
			return err
		}
		program, modules := program(s.Entry, info), linked(s.Entry.Go, info)
		one := newBill(&program)
		one.add("", modules)
		if err := one.write(filepath.Join(o.sbomDir(), billOf(s.Entry.Name))); err != nil {
			return err
		}
		whole.add("payload", []cyclonedx.Component{program})
		whole.add(program.BOMRef, modules)
	}
	return whole.write(filepath.Join(o.sbomDir(), wholeBill))
}

// bill collects each component once, and the dependencies.
type bill struct {
	root       *cyclonedx.Component
	components map[string]cyclonedx.Component
	depends    map[string][]string
}

func newBill(root *cyclonedx.Component) *bill {
	return &bill{root: root, components: map[string]cyclonedx.Component{}, depends: map[string][]string{}}
}

// add adds dependencies of the component with that reference, or of the root if it is empty.
func (b *bill) add(ref string, components []cyclonedx.Component) {
	if ref == "" {
		ref = b.root.BOMRef
	}
	for _, c := range components {
		b.components[c.BOMRef] = c
		b.depends[ref] = append(b.depends[ref], c.BOMRef)
	}
}

func (b *bill) write(path string) error {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: b.root}
	components, dependencies := []cyclonedx.Component{}, []cyclonedx.Dependency{}
	for _, ref := range slices.Sorted(maps.Keys(b.components)) {
		components = append(components, b.components[ref])
	}
	for _, ref := range slices.Sorted(maps.Keys(b.depends)) {
		slices.Sort(b.depends[ref])
		list := slices.Compact(b.depends[ref])
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: ref, Dependencies: &list})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, specVersion); err != nil {
		return fmt.Errorf("encoding bill of materials %q: %w", path, err)
	}
	return write(path, out.Bytes())
}

// program returns an executable as a component.
func program(e store.Entry, info *debug.BuildInfo) cyclonedx.Component {
	return cyclonedx.Component{
		BOMRef: e.Name, Type: cyclonedx.ComponentTypeApplication, Name: e.Name, Version: e.Version,
		PackageURL: packageURL(e.Module, e.Version),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: strings.TrimPrefix(string(e.Raw.Digest), "sha256:")}},
		Properties: &[]cyclonedx.Property{{Name: "wmco:path", Value: e.Path}, {Name: "wmco:package", Value: info.Path}, {Name: "wmco:go", Value: e.Go}},
	}
}

// linked returns the modules of an executable: the standard library, the main module and all others.
func linked(release string, info *debug.BuildInfo) []cyclonedx.Component {
	release = strings.TrimPrefix(release, "go")
	list := []cyclonedx.Component{{
		BOMRef: packageURL("std", release), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: release, PackageURL: packageURL("std", release),
	}}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		list = append(list, library(built(*m)))
	}
	return list
}

func library(m debug.Module) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: packageURL(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: packageURL(m.Path, m.Version),
	}
	if m.Sum != "" {
		// It is a digest of a list of digests, not the hash of a file.
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// packageURL returns the URL of a Go module as in github.com/package-url/purl-spec: + is escaped, upper and lower case stay as
// in the module path.
func packageURL(module, version string) string {
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
}
