// Package bills makes bills of materials from the build information of programs. They have no time and no place: the
// same programs have the same bills.
package bills

import (
	"bytes"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// specVersion is the version of CycloneDX. It is not the newest, so that scanners can read it.
const specVersion = cyclonedx.SpecVersion1_6

// Bill collects each component once, and the dependencies.
type Bill struct {
	root       *cyclonedx.Component
	components map[string]cyclonedx.Component
	depends    map[string][]string
}

// New returns the bill of a component, which has a reference.
func New(root cyclonedx.Component) *Bill {
	return &Bill{root: &root, components: map[string]cyclonedx.Component{}, depends: map[string][]string{}}
}

// Add adds dependencies of the component with that reference, or of the root if it is empty.
func (b *Bill) Add(ref string, components []cyclonedx.Component) {
	if ref == "" {
		ref = b.root.BOMRef
	}
	for _, c := range components {
		b.components[c.BOMRef] = c
		b.depends[ref] = append(b.depends[ref], c.BOMRef)
	}
}

// Merge adds the root of another bill as a dependency of this one's root, with all that it depends on.
func (b *Bill) Merge(other *cyclonedx.BOM) {
	if other.Components != nil {
		for _, c := range *other.Components {
			b.components[c.BOMRef] = c
		}
	}
	if other.Dependencies != nil {
		for _, d := range *other.Dependencies {
			if d.Dependencies != nil {
				b.depends[d.Ref] = append(b.depends[d.Ref], *d.Dependencies...)
			}
		}
	}
	b.Add("", []cyclonedx.Component{*other.Metadata.Component})
}

// Encode returns the bill, sorted.
func (b *Bill) Encode() ([]byte, error) {
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
		return nil, fmt.Errorf("encoding the bill of materials of %s: %w", b.root.Name, err)
	}
	return out.Bytes(), nil
}

// LinkedModules returns the modules of a program: the standard library, the main module and all others. release is that
// of Go.
func LinkedModules(release string, info *debug.BuildInfo) []cyclonedx.Component {
	release = strings.TrimPrefix(release, "go")
	list := []cyclonedx.Component{{
		BOMRef: PackageURL("std", release), Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: release,
		PackageURL: PackageURL("std", release),
	}}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		list = append(list, libraryComponent(EffectiveModule(*m)))
	}
	return list
}

// EffectiveModule returns the module that was built: the replacement, if there is one. A patched copy in a folder is no
// module of its own.
func EffectiveModule(m debug.Module) debug.Module {
	if m.Replace != nil && m.Replace.Version != "" && m.Replace.Version != "(devel)" {
		return *m.Replace
	}
	return m
}

func libraryComponent(m debug.Module) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: PackageURL(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: PackageURL(m.Path, m.Version),
	}
	if m.Sum != "" {
		// It is a digest of a list of digests, not the hash of a file.
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// PackageURL returns the URL of a Go module as in github.com/package-url/purl-spec: + is escaped, upper and lower case
// stay as in the module path.
func PackageURL(module, version string) string {
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
}
