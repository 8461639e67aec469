package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// Before is what a machine had before a run, of what has no name of the self-test and is given back. A machine keeps it
// from before the first change until the run is cleaned up: a run that was killed, and a machine that has booted since,
// cannot be asked.
type Before struct {
	// HostName is the name of the computer, empty if it is not known.
	HostName string `json:"HostName"`
	// NoFeature is true if Feature was neither on nor pending, NoStateFolder if there was no plan.StateFolder.
	NoFeature     bool `json:"noFeature,omitempty"`
	NoStateFolder bool `json:"noStateFolder,omitempty"`
}

// ReadBefore returns what a host has before a run.
func ReadBefore(ctx context.Context, host applier.Host) (Before, error) {
	facts, err := host.Facts(ctx)
	if err != nil {
		return Before{}, err
	}
	infos, err := host.Stat(ctx, []string{plan.StateFolder})
	if err != nil {
		return Before{}, err
	}
	have, err := host.Settings(ctx, []plan.Setting{{Kind: bundle.KindFeature, Name: Feature}})
	if err != nil {
		return Before{}, err
	}
	return Before{HostName: facts.HostName, NoFeature: !have[0].Present && !have[0].Pending, NoStateFolder: infos[0].Kind == plan.FileAbsent}, nil
}

// Cleaner removes from a host what clauses make.
type Cleaner struct {
	Host applier.Host
	// Folder is that of the fixture.
	Folder string
	// Before is the state to restore; the zero value restores what the host still knows.
	Before Before
	// Without has the kinds of settings that this host cannot be asked for.
	Without []bundle.EntryKind
}

// Clean removes what clauses make by fixed names: services and settings, and gives back what was before. It returns
// what it removed. Folders and trusted CAs are left to the caller.
func (c Cleaner) Clean(ctx context.Context) (removed []string, err error) {
	states, err := c.Host.Services(ctx, services())
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, s := range states {
		if s.Status == plan.ServiceAbsent {
			continue
		}
		removed = append(removed, "service "+s.Name)
		failed = append(failed, c.Host.StopService(ctx, s.Name), c.Host.DeleteService(ctx, s.Name))
	}
	for _, s := range settings(c.Folder) {
		if slices.Contains(c.Without, s.Kind) {
			continue
		}
		gone, err := c.remove(ctx, s)
		if gone {
			removed = append(removed, string(s.ID()))
		}
		failed = append(failed, err)
	}
	given, err := c.giveBack(ctx)
	return append(removed, given...), errors.Join(append(failed, err)...)
}

// remove removes a setting that is there.
func (c Cleaner) remove(ctx context.Context, s plan.Setting) (removed bool, err error) {
	have, err := c.Host.Settings(ctx, []plan.Setting{s})
	if err != nil || !have[0].Present {
		return false, err
	}
	if err := c.Host.Set(ctx, s); err != nil {
		return false, fmt.Errorf("removing %s: %w", s.ID(), err)
	}
	return true, nil
}

// giveBack gives the computer its name, and removes the feature and the folder that were not there. Where the machine
// has booted since, name and feature are in effect, and go with its next boot.
func (c Cleaner) giveBack(ctx context.Context) (removed []string, err error) {
	renamed, err := c.giveName(ctx)
	if renamed {
		removed = append(removed, "host name "+HostName)
	}
	if c.Before.NoFeature {
		gone, failed := c.remove(ctx, plan.Setting{Kind: bundle.KindFeature, Name: Feature})
		if gone {
			removed = append(removed, "feature "+Feature)
		}
		err = errors.Join(err, failed)
	}
	if c.Before.NoStateFolder {
		err = errors.Join(err, c.Host.Remove(ctx, plan.LockFile), c.Host.Remove(ctx, plan.StateFolder))
	}
	return removed, err
}

// giveName gives the computer its name back where it has, or waits for, that of a clause.
func (c Cleaner) giveName(ctx context.Context) (changed bool, err error) {
	have, err := c.Host.Settings(ctx, []plan.Setting{{Kind: bundle.KindHostName, Name: bundle.Computer}})
	if err != nil || !strings.EqualFold(have[0].Value, HostName) {
		return false, err
	}
	name := c.Before.HostName
	if name == "" {
		facts, err := c.Host.Facts(ctx)
		if err != nil {
			return false, err
		}
		name = facts.HostName
	}
	if strings.EqualFold(name, HostName) {
		return false, nil // it is the computer's own
	}
	return true, c.Host.Set(ctx, plan.Setting{Kind: bundle.KindHostName, Name: bundle.Computer, Value: name, Present: true})
}

// CheckRoot returns an error unless the entry at Root is of administrators, with the access that the self-test gives it.
// The self-test runs programs there as SYSTEM, and every user may make a folder of that name before.
func CheckRoot(f plan.FileInfo) error {
	ours := f.Kind == plan.FileDirectory && f.Owner != plan.OwnerOther && (f.Access == "" || f.Access == bundle.AccessUsers)
	if f.Kind == plan.FileAbsent || ours {
		return nil
	}
	return fmt.Errorf("%s was made by another user or program, who could change what the self-test runs there: look at it, and delete it", Root)
}
