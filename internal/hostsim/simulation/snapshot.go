package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Snapshot is a whole host in a form that can be compared: without times, process IDs and IDs of files.
type Snapshot struct {
	Files    map[string]FileSnapshot
	Services map[string]ServiceSnapshot
	// Settings are by their ID. They hold secrets in clear text.
	Settings                            map[string]plan.Setting
	Facts                               bundle.Facts
	HostName, NextHostName, RebootAsked string
	Boot                                int
}

// FileSnapshot is the entry at a path.
type FileSnapshot struct {
	Kind   plan.FileKind
	Access bundle.Access
	Owner  plan.Owner
	Digest bundle.Digest
}

// ServiceSnapshot is the configuration and the status of a service.
type ServiceSnapshot struct {
	plan.ServiceConfig
	Status plan.ServiceStatus
	// Delivered is the environment that it runs with, Programs the number of its processes.
	Delivered []string
	Programs  int
}

// Snapshot returns what the whole host is, as Own has it.
func (h *Host) Snapshot(ctx context.Context) (Snapshot, error) {
	files := map[string]FileSnapshot{}
	if err := addFiles(h.Own.Files, Drive, files); err != nil {
		return Snapshot{}, fmt.Errorf("reading all files: %w", err)
	}
	var snap Snapshot
	err := h.itself(ctx, func(s *State) error {
		snap = s.snapshot(files)
		return nil
	})
	return snap, err
}

// addFiles adds the entries of a folder and of the folders in it.
func addFiles(d DiskReader, folder string, files map[string]FileSnapshot) error {
	infos, err := d.List(folder)
	if err != nil {
		return err
	}
	for _, info := range infos {
		f := FileSnapshot{Kind: info.Kind, Access: info.Access, Owner: info.Owner}
		if f.Kind == plan.FileRegular {
			if f.Digest, err = digest(d, info.Path); err != nil {
				return err
			}
		}
		files[info.Path] = f
		if err := addFiles(d, info.Path, files); err != nil {
			return err
		}
	}
	return nil
}

func digest(d DiskReader, path string) (bundle.Digest, error) {
	f, err := d.Open(path)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(f)
	return bundle.Of(data), errors.Join(err, f.Close())
}

func (s *State) snapshot(files map[string]FileSnapshot) Snapshot {
	snap := Snapshot{
		Files:        files,
		Services:     map[string]ServiceSnapshot{},
		Settings:     maps.Clone(s.Settings),
		Facts:        s.Facts,
		HostName:     s.HostName,
		NextHostName: s.NextHostName,
		RebootAsked:  s.RebootAsked,
		Boot:         s.Boot,
	}
	for key, svc := range s.Services {
		x := ServiceSnapshot{ServiceConfig: svc.ServiceConfig, Status: s.serviceState(svc.Name).Status, Programs: len(svc.Processes)}
		if svc.Status == plan.ServiceRunning {
			x.Delivered = svc.Delivered
		}
		snap.Services[key] = x
	}
	return snap
}
