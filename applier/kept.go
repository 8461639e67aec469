package applier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// checkKept returns why a plan is not carried out, as a *RefusedError: it would take from the host what whoever made
// the bundle may not have known. A repair, and whatever ends an interrupted run, is not checked: the run that began it
// was.
func (r *run) checkKept(ctx context.Context, record records.BundleRecord, p plan.Plan) error {
	if r.repairs {
		return nil
	}
	if removesSigningKeys(p) && !r.options.RemoveSigningKeys {
		if r.engine.Reset == "" {
			return &RefusedError{Why: keysWhy + "; " + keysFix}
		}
		r.progress.addNote(fmt.Sprintf("%s is removed: the host stops being node %s", bundle.SigningKeysFile, r.engine.Reset))
	}
	lacks, err := r.engine.lackedProgram(ctx, record, p)
	if err == nil && lacks != "" {
		err = &RefusedError{Why: lacks}
	}
	return err
}

// The reason and the fix for a bundle without signing keys for a host that has some.
const (
	keysWhy = "the bundle has no signing keys and would remove " + bundle.SigningKeysFile +
		": until it is there again, the node agent accepts what no operator has signed"
	keysFix = "render it with the cluster as input (--from cluster), which has them, or allow the removal with --remove-signing-keys"
)

// removesSigningKeys reports whether a plan removes the keys of the operator. Those that nothing brought are not
// managed, and stay.
func removesSigningKeys(p plan.Plan) bool {
	return removesPath(p, bundle.SigningKeysFile)
}

// lackedProgram returns the program of a service that the plan creates or changes and that is neither on the host nor in the
// bundle; empty if there is none. A service cannot start without it, and the one that ran before would have been stopped for
// it.
func (e *Engine) lackedProgram(ctx context.Context, record records.BundleRecord, p plan.Plan) (string, error) {
	b := record.ManifestBundle()
	services := b.Services()
	brought := map[string]bool{}
	for _, x := range b.Payload() {
		brought[bundle.FoldPath(x.Path)] = x.Digest != "" // without a digest it is only named
	}
	for _, f := range b.Files() {
		brought[bundle.FoldPath(f.Path)] = true
	}
	for _, s := range p.Steps {
		if s.Verb != protocol.VerbPut {
			continue
		}
		i := slices.IndexFunc(services, func(x bundle.Service) bool { return x.Name == s.Service.Config.Name })
		if i < 0 {
			continue
		}
		programs := slices.DeleteFunc(programsOf(services[i]), func(path string) bool { return brought[bundle.FoldPath(path)] })
		if len(programs) == 0 {
			continue
		}
		infos, err := e.Host.Stat(ctx, programs)
		if err != nil {
			return "", fmt.Errorf("observing the programs of %s: %w", s.Service.Config.Name, err)
		}
		for k, path := range programs {
			if infos[k].Kind != plan.FileRegular || removesPath(p, path) {
				return fmt.Sprintf("the service %s would run %s, which is neither on the host nor in the bundle; give the executables with --payload", s.Service.Config.Name, path), nil
			}
		}
	}
	return "", nil
}

// programsOf returns the program of a service, and the one that a wrapper around it starts.
func programsOf(s bundle.Service) []string {
	programs := slices.Clone(s.Argv[:1])
	for _, arg := range s.Argv[1:] {
		if strings.HasSuffix(strings.ToLower(arg), ".exe") && bundle.CheckPath(arg) == nil {
			programs = append(programs, arg)
		}
	}
	return programs
}

func removesPath(p plan.Plan, path string) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		return s.Verb == protocol.VerbRemove && bundle.FoldPath(s.File.Path) == bundle.FoldPath(path)
	})
}

// refusalNotes say why Apply would refuse a plan that is only shown.
func (e *Engine) refusalNotes(ctx context.Context, record records.BundleRecord, p plan.Plan) ([]string, error) {
	var notes []string
	if removesSigningKeys(p) && e.Reset == "" {
		notes = append(notes, "apply refuses this: "+keysWhy+"; "+keysFix)
	}
	lacks, err := e.lackedProgram(ctx, record, p)
	if lacks != "" {
		notes = append(notes, "apply refuses this: "+lacks)
	}
	return notes, err
}
