package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"wmco/payload/store"
)

// Files is what a release consists of besides manifests for clusters.
type Files struct {
	Image Image
	// Layout is the folder that Image.Write wrote, Digest what it returned.
	Layout, Digest string
	// Programs are the command lines.
	Programs []Program
	// Before is the list of executables of the release before. May be empty.
	Before string
	// Downloads is the URL below which the files will be.
	Downloads string
}

// Write writes the files into a folder.
func (f Files) Write(dir string) error {
	v := f.Image.Labels.Version
	if err := os.MkdirAll(dir, modeFolder.Perm()); err != nil {
		return err
	}
	archives, err := f.programs(dir)
	if err != nil {
		return err
	}
	manifest, err := Krew(archives, dir, strings.TrimSuffix(f.Downloads, "/"), f.Image.Labels.Source)
	if err != nil {
		return err
	}
	list := filepath.Join(f.Image.Payload, store.ListFile)
	notes, err := NotesOf(v, f.Before, list)
	if err != nil {
		return err
	}
	executables, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	bill, err := f.Image.Bill(f.Digest)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"wmco-" + v + "-krew.yaml":           manifest,
		"wmco-" + v + "-notes.md":            []byte(notes),
		"wmco-" + v + "-payload.json":        executables,
		Name + "-" + v + "-image.cdx.json":   bill,
		Name + "-" + v + "-image.digest.txt": []byte(f.Digest + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, modeFile); err != nil {
			return err
		}
	}
	if err := f.Image.packPayload(filepath.Join(dir, "wmco-"+v+"-payload.tar")); err != nil {
		return err
	}
	return PackLayout(f.Layout, filepath.Join(dir, Name+"-"+v+"-image.tar"), f.Image.Labels.Created)
}

// programs writes an archive and a bill of materials for each platform.
func (f Files) programs(dir string) ([]Archive, error) {
	var archives []Archive
	for _, p := range f.Programs {
		a := Archive{Program: p, Version: f.Image.Labels.Version, License: f.Image.License, Created: f.Image.Labels.Created}
		if err := a.Write(dir); err != nil {
			return nil, fmt.Errorf("packing the program for %s: %w", p.Platform(), err)
		}
		bill, err := p.Bill(a.Version)
		if err != nil {
			return nil, err
		}
		name := "wmco-" + a.Version + "-" + p.OS + "-" + p.Arch + ".cdx.json"
		if err := os.WriteFile(filepath.Join(dir, name), bill, modeFile); err != nil {
			return nil, err
		}
		archives = append(archives, a)
	}
	return archives, nil
}
