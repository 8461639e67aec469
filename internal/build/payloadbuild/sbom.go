package payloadbuild

import (
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"wmco/internal/build/bills"
	"wmco/payload"
	"wmco/payload/store"
)

// wholeBill is the name of the bill of materials of all executables together.
const wholeBill = "payload.cdx.json"

// billOf returns the name of the bill of materials of one executable.
func billOf(name string) string { return name + ".cdx.json" }

// writeBills writes a bill of materials for each executable and one for all. They come from the build information and
// have no time and no place: the same executables have the same bills.
func (o Options) writeBills(stamps []stamp) error {
	whole := bills.New(cyclonedx.Component{BOMRef: "payload", Type: cyclonedx.ComponentTypeApplication, Name: "wmco payload", Version: o.Version})
	for _, s := range stamps {
		info, err := s.info()
		if err != nil {
			return err
		}
		program, modules := programComponent(s.Entry, info), bills.LinkedModules(s.Entry.Go, info)
		one := bills.New(program)
		one.Add("", modules)
		if err := o.writeBill(one, billOf(s.Entry.Name)); err != nil {
			return err
		}
		whole.Add("payload", []cyclonedx.Component{program})
		whole.Add(program.BOMRef, modules)
	}
	return o.writeBill(whole, wholeBill)
}

func (o Options) writeBill(b *bills.Bill, name string) error {
	data, err := b.Encode()
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(o.sbomDir(), name), data)
}

// programComponent returns an executable as a component.
func programComponent(e store.Entry, info *debug.BuildInfo) cyclonedx.Component {
	return cyclonedx.Component{
		BOMRef: e.Name, Type: cyclonedx.ComponentTypeApplication, Name: e.Name, Version: e.Version,
		PackageURL: bills.PackageURL(e.Module, e.Version),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: strings.TrimPrefix(string(e.Raw.Digest), "sha256:")}},
		Properties: &[]cyclonedx.Property{
			{Name: "wmco:path", Value: e.Path}, {Name: "wmco:package", Value: info.Path},
			{Name: "wmco:go", Value: e.Go},
		},
		Pedigree: patchPedigree(e.Name),
	}
}

// patchPedigree names the defects that patches of ours correct in an executable; nil without any.
func patchPedigree(name string) *cyclonedx.Pedigree {
	var patches []cyclonedx.Patch
	for _, d := range payload.Defects() {
		if len(d.Patches) > 0 && slices.Contains(d.Executables, name) {
			patches = append(patches, cyclonedx.Patch{Type: cyclonedx.PatchTypeUnofficial, Resolves: &[]cyclonedx.Issue{
				{Type: cyclonedx.IssueTypeDefect, ID: d.Report, Description: d.Effect},
			}})
		}
	}
	if len(patches) == 0 {
		return nil
	}
	return &cyclonedx.Pedigree{Patches: &patches}
}
