// Package collect answers a question of preflight on a host. It only reads: it looks names up, connects to API servers
// and registries with a HEAD or GET request, and asks the host for facts. Nothing that it returns or reports as an
// error has a credential in it.
package collect

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/preflight"
)

// System is the Windows of a host, as far as applier.Host does not have it.
type System interface {
	// Machine sets what it can, and returns why the rest could not be read.
	Machine(ctx context.Context, m *preflight.Machine) []error
}

// Options are how a question is answered.
type Options struct {
	// Now is the host's clock.
	Now func() time.Time
	// Limit is how long one URL or name may take; zero is ten seconds.
	Limit time.Duration
	// Resolver looks names up; nil is the host's.
	Resolver *net.Resolver
}

const defaultLimit = 10 * time.Second

// Answer asks the host, and what the question names. What cannot be read is in Answer.Unread.
func Answer(ctx context.Context, q preflight.Question, host applier.Host, system System, o Options) preflight.Answer {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	a := answer{preflight.Answer{Schema: preflight.Schema}}
	// The parts that ask the service control manager come one after the other: Wine answers two connections to it at
	// once with an invalid handle.
	a.read("facts", func() (err error) {
		a.Facts, err = host.Facts(ctx)
		return err
	})
	readHost(ctx, host, &a)
	for _, err := range system.Machine(ctx, &a.Machine) {
		a.Unread = append(a.Unread, err.Error())
	}
	a.Names = lookUp(ctx, o, a.Facts, q.Address)
	a.Reached, a.ClockSkewSeconds = reachAll(ctx, q, o)
	slices.Sort(a.Unread)
	return a.Answer
}

// answer is an answer that is being made.
type answer struct{ preflight.Answer }

// read calls a function and keeps why it failed.
func (a *answer) read(what string, do func() error) {
	if err := do(); err != nil {
		a.Unread = append(a.Unread, fmt.Sprintf("%s: %v", what, err))
	}
}

// containerdProgram is the program that Defender should leave alone.
const containerdProgram = `C:\k\containerd\containerd.exe`

// readHost asks for what every applier.Host knows.
func readHost(ctx context.Context, host applier.Host, a *answer) {
	a.read("services", func() error {
		states, err := host.Services(ctx, preflight.Services())
		for _, s := range states {
			if s.Status != plan.ServiceAbsent {
				a.Machine.Services = append(a.Machine.Services, preflight.Service{Name: s.Name,
					Program: ProgramOf(s.CommandLine), Running: s.Status == plan.ServiceRunning})
			}
		}
		return err
	})
	a.read("exclusions of Defender", func() error {
		have, err := host.Settings(ctx, []plan.Setting{{Kind: bundle.KindExclusion, Name: containerdProgram}})
		a.Machine.Excluded = err == nil && have[0].Present
		return err
	})
	a.read("folders", func() error {
		infos, err := host.Stat(ctx, []string{plan.StateFolder, bundle.UploadFolder})
		for _, i := range infos {
			if i.Kind != plan.FileAbsent {
				a.Machine.Folders = append(a.Machine.Folders, preflight.Folder{Path: i.Path, Trusted: i.IsTrusted()})
			}
		}
		return err
	})
	a.read("room on drive C:", func() (err error) {
		a.Machine.FreeBytes, err = host.Free(ctx)
		return err
	})
}

// ProgramOf returns the program of a command line without its arguments, which may hold secrets.
func ProgramOf(commandLine string) string {
	text := strings.TrimSpace(commandLine)
	if rest, quoted := strings.CutPrefix(text, `"`); quoted {
		program, _, _ := strings.Cut(rest, `"`)
		return program
	}
	// A path with spaces and without quotes ends at its first .exe.
	if end := strings.Index(strings.ToLower(text), ".exe"); end >= 0 {
		return text[:end+len(".exe")]
	}
	program, _, _ := strings.Cut(text, " ")
	return program
}

// lookUp asks DNS for the host's name and for its address.
func lookUp(ctx context.Context, o Options, facts bundle.Facts, address string) preflight.Names {
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	names := preflight.Names{Full: facts.HostName}
	if names.Full == "" {
		return names
	}
	if facts.DNSSuffix != "" {
		names.Full += "." + facts.DNSSuffix
	}
	if net.ParseIP(address) == nil {
		address = facts.DefaultRoute.Address
	}
	var both sync.WaitGroup
	// A name that is not found is a finding, and so is a DNS that does not answer.
	both.Go(func() { names.Addresses, _ = o.Resolver.LookupHost(limited, names.Full) })
	both.Go(func() { names.Pointers, _ = o.Resolver.LookupAddr(limited, address) })
	both.Wait()
	slices.Sort(names.Addresses)
	slices.Sort(names.Pointers)
	return names
}
