package records

import (
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// What records name is checked like a bundle, so that a run does nothing for them that it would not do for one.

// checkSetting returns an error for a setting that no bundle can have.
func checkSetting(kind bundle.EntryKind, name string) error {
	if kind == bundle.KindVariable {
		if err := bundle.CheckMachineVariable(name); err != nil {
			return fmt.Errorf("%w: %w", bundle.ErrInconsistent, err)
		}
	}
	if !bundle.Describe(kind).Setting || name == "" {
		return fmt.Errorf("%w: no bundle has the setting %q", bundle.ErrInconsistent, kind.ID(name))
	}
	return nil
}

// checkFolders returns an error for a folder that no bundle needs.
func checkFolders(paths []string) error {
	for _, path := range paths {
		if err := plan.CheckKept(path); err != nil {
			return err
		}
	}
	return nil
}

// checkEntries returns an error for an entry that no bundle can have, and for a service with a command that none of the
// bundles has. Services that a run only stops and starts, because they depend on others, have no command in a journal.
func (b Before) checkEntries(known func(service string) bool) error {
	for _, f := range b.Files {
		if err := plan.CheckKept(f.Path); err != nil {
			return err
		}
	}
	for _, s := range b.Settings {
		if err := checkSetting(s.Kind, s.Name); err != nil {
			return err
		}
	}
	for _, s := range b.Services {
		if s.Config.CommandLine != "" && !known(s.Config.Name) {
			return fmt.Errorf("%w: no bundle has the service %q", bundle.ErrInconsistent, s.Config.Name)
		}
	}
	return nil
}

// haveService reports whether one of the bundles has the service.
func haveService(bundles []bundle.Bundle, service string) bool {
	return slices.ContainsFunc(bundles, func(b bundle.Bundle) bool {
		return slices.ContainsFunc(b.Services(), func(s bundle.Service) bool { return plan.ServiceName(s.Name) == plan.ServiceName(service) })
	})
}
