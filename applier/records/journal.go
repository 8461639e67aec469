package records

import (
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
)

// Phase is how far a run has come.
type Phase string

const (
	// PhaseApplying means that actions are being done.
	PhaseApplying Phase = "applying"
	// PhaseReboot means that the rest waits for the host to boot.
	PhaseReboot Phase = "rebooting"
	// PhaseConfirming means that all services are healthy and the caller has not confirmed.
	PhaseConfirming Phase = "confirming"
	// PhaseHandover means that everything is done and confirmed but for the service of the program itself, which is
	// exchanged: the new process has to confirm. It writes no record before, because a program of an older version may
	// have to read them.
	PhaseHandover Phase = "handing over"
	// PhaseRecording means that everything is done and confirmed, and that the ledger is being written. Once the ledger
	// has the bundle, the run has finished. A run that repairs the bundle of the ledger is not in this phase before it
	// is done.
	PhaseRecording Phase = "recording"
	// PhaseRollback means that the state before is being restored.
	PhaseRollback Phase = "rolling back"
)

// Journal is what it takes to resume or undo an interrupted run. It exists from before the first action until after the
// ledger is written.
type Journal struct {
	Schema int          `json:"schema"`
	Phase  Phase        `json:"phase"`
	Bundle BundleRecord `json:"bundle"`
	// Earlier are bundles whose runs were interrupted before this one: their entries are managed too.
	Earlier []BundleRecord `json:"earlier,omitempty"`
	Before  Before         `json:"before"`
	// Restart are services that read a changed file and have not been started since.
	Restart []string `json:"restart,omitempty"`
	// Starts are services that this run starts: they have to be healthy at its end.
	Starts []string `json:"starts,omitempty"`
	// Stale is what belongs to another cluster and has not been removed yet.
	Stale plan.Stale `json:"stale,omitzero"`
	// Boot is the boot time of the host when the run began.
	Boot string `json:"boot,omitempty"`
	// Allowed is the highest impact that is allowed for the run, empty in records of older schemas.
	Allowed bundle.Impact `json:"allowed,omitempty"`
	// Confirmer is who confirms the run, if another process can ask it as well.
	Confirmer string `json:"confirmer,omitempty"`
	// Waiting is how long an unconfirmed run is kept. It begins with PhaseConfirming.
	Waiting Waiting `json:"waiting,omitzero"`
	// Reason is why the run is rolled back, in PhaseRollback. It holds no secrets.
	Reason string `json:"reason,omitempty"`
	// Deadline is what records of schema 1 have in the place of Waiting.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Waiting is a wait for a confirmation, by a clock that cannot be set: the time since the host booted. The times are in
// nanoseconds.
type Waiting struct {
	Since time.Duration `json:"since"`
	Limit time.Duration `json:"limit"`
}

// IsLate reports whether the confirmation is late. After another boot it is not known how long the host was down, and
// the wait begins again with the boot: it takes twice its limit at most.
func (j Journal) IsLate(boot string, sinceBoot time.Duration, now time.Time) bool {
	switch {
	case !j.Deadline.IsZero():
		return now.After(j.Deadline)
	case boot != j.Boot:
		return sinceBoot > j.Waiting.Limit
	}
	return sinceBoot-j.Waiting.Since > j.Waiting.Limit || sinceBoot < j.Waiting.Since
}

// TimeLeft returns how long the confirmation may take still, negative if it is late. It is that of IsLate.
func (j Journal) TimeLeft(boot string, sinceBoot time.Duration) time.Duration {
	if boot != j.Boot {
		return j.Waiting.Limit - sinceBoot
	}
	return j.Waiting.Limit - (sinceBoot - j.Waiting.Since)
}

// Before is what the changing entries were. Contents are in the store or kept as files. It may hold secrets.
type Before struct {
	Files    []FileBefore    `json:"files,omitempty"`
	Settings []SettingBefore `json:"settings,omitempty"`
	Services []serviceBefore `json:"services,omitempty"`
}

// FileBefore is what was at a path.
type FileBefore struct {
	Entry   bundle.EntryID `json:"entry"`
	Path    string         `json:"path"`
	Kind    plan.FileKind  `json:"kind,omitempty"`
	Access  bundle.Access  `json:"access,omitempty"`
	Content plan.Content   `json:"content,omitzero"`
}

// SettingBefore is what a setting was.
type SettingBefore struct {
	Kind    bundle.EntryKind `json:"kind"`
	Name    string           `json:"name"`
	Value   []byte           `json:"value,omitempty"`
	Present bool             `json:"present,omitempty"`
}

type serviceBefore struct {
	Config  plan.ServiceConfig `json:"config"`
	Present bool               `json:"present,omitempty"`
	Running bool               `json:"running,omitempty"`
}

// checkNames checks everything that a journal names. Applied reports whether a service may be in the ledger.
func (j Journal) checkNames(applied func(service string) bool) error {
	var bundles []bundle.Bundle
	for _, r := range append([]BundleRecord{j.Bundle}, j.Earlier...) {
		if err := r.checkRecord(); err != nil {
			return err
		}
		bundles = append(bundles, r.ManifestBundle())
	}
	if err := checkFolders(j.Stale.Paths); err != nil {
		return err
	}
	return j.Before.checkEntries(func(service string) bool { return applied(service) || haveService(bundles, service) })
}

// StartedByUs reports whether the journal recorded no service of that name before the run.
func (j Journal) StartedByUs(name string) bool {
	return slices.ContainsFunc(j.Before.Services, func(b serviceBefore) bool {
		return plan.ServiceName(b.Config.Name) == plan.ServiceName(name) && !b.Present
	})
}

// AddSetting adds what a setting is, unless the journal has it.
func (b *Before) AddSetting(have plan.Setting, wanted plan.WantedSetting) {
	same := func(s SettingBefore) bool { return s.Kind == wanted.Kind && s.Name == wanted.Name }
	if slices.ContainsFunc(b.Settings, same) {
		return
	}
	b.Settings = append(b.Settings, SettingBefore{Kind: wanted.Kind, Name: wanted.Name, Value: []byte(have.Value), Present: have.Present})
}

// AddService adds what a service is, unless the journal has it.
func (b *Before) AddService(name string, observed plan.Observed) {
	same := func(s serviceBefore) bool { return plan.ServiceName(s.Config.Name) == plan.ServiceName(name) }
	if slices.ContainsFunc(b.Services, same) {
		return
	}
	have := observed.ServiceState(name)
	have.Name = name
	b.Services = append(b.Services, serviceBefore{
		Config: have.ServiceConfig, Present: have.Status != plan.ServiceAbsent, Running: have.Status == plan.ServiceRunning || have.Status == plan.ServicePending,
	})
}

// WasThere reports whether an entry was on the host before the run began.
func (b Before) WasThere(id bundle.EntryID) bool {
	i := slices.IndexFunc(b.Settings, func(s SettingBefore) bool { return s.Kind.ID(s.Name) == id })
	return i < 0 || b.Settings[i].Present
}

// TargetBefore returns what there was, as something to apply.
func (b Before) TargetBefore() plan.Target {
	t := plan.Target{Exclusive: map[string]bool{}, Logs: map[string]bool{}}
	for _, f := range b.Files {
		item := plan.WantedFile{ID: f.Entry, Path: f.Path, Kind: f.Kind, Access: f.Access, Impact: bundle.ImpactRestart,
			Content: f.Content, Reason: protocol.ReasonUnwanted}
		switch f.Kind {
		case plan.FileRegular:
			item.Digest = bundle.Digest("sha256:" + f.Content.SHA256)
		case plan.FileOther:
			continue // a link that stood in the way: its target is unknown
		case plan.FileAbsent, plan.FileDirectory:
		}
		t.Files = append(t.Files, item)
	}
	plan.SortFiles(t.Files)
	for _, s := range b.Settings {
		t.Settings = append(t.Settings, plan.WantedSetting{
			Kind: s.Kind, Name: s.Name, Value: plan.PlainValue(string(s.Value)), Present: s.Present, Impact: bundle.ImpactRestart,
		})
	}
	for _, s := range b.Services {
		t.Services = append(t.Services, s.wantedService())
	}
	return t
}

func (s serviceBefore) wantedService() plan.WantedService {
	item := plan.WantedService{Config: s.Config, Present: s.Present, Run: s.Running, Impact: bundle.ImpactRestart}
	for _, line := range s.Config.Environment {
		v := plan.SplitVariable(line)
		item.Variables = append(item.Variables, v)
	}
	item.Config.Environment = nil
	return item
}
