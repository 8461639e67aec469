package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/base/leader"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode/record"
	"wmco/preflight"
	"wmco/render"
)

// Transports reach hosts. Kept keeps connections for the next command; Fresh opens one for each, which is how a change
// is confirmed.
type Transports struct{ Kept, Fresh remote.Transport }

// Options are what hosts are reached with.
type Options struct {
	Transports Transports
	// Program is the node agent, which is uploaded to hosts that lack it.
	Program remote.Program
	// Executables are the contents of the payload; nil has none.
	Executables archive.Source
	// Port is the TCP port of the SSH servers; empty is 22.
	Port string
	// KubeletWithin is how long a host waits for a Wish.Confirmation; zero is five minutes.
	KubeletWithin time.Duration
}

// Hosts are reached with one Options. It may be used by many goroutines at once.
type Hosts struct {
	client, confirms *remote.Client
	executables      []archive.Source
	port             string
	kubeletWithin    time.Duration
	clocks           *Clocks

	mu   sync.Mutex
	busy map[string]bool
	// seen are the names in the facts that each address reported last.
	seen map[string]bundle.Facts
}

// New connects to nothing.
func New(o Options) *Hosts {
	client := remote.NewClient(o.Transports.Kept, o.Program, remote.DefaultLimits())
	h := &Hosts{client: client, confirms: client.WithTransport(o.Transports.Fresh), port: o.Port,
		kubeletWithin: cmp.Or(o.KubeletWithin, kubeletWithin), clocks: NewClocks(time.Now), busy: map[string]bool{},
		seen: map[string]bundle.Facts{}}
	if o.Executables != nil {
		h.executables = []archive.Source{o.Executables}
	}
	return h
}

// WithGuard has these hosts ask before each act that changes one whether this process still may
// (remote.Client.GuardedBy). It is called before they are used.
func (h *Hosts) WithGuard(mayChange func(context.Context) error) *Hosts {
	h.client, h.confirms = h.client.GuardedBy(mayChange), h.confirms.GuardedBy(mayChange)
	return h
}

// NotingClocks has these hosts note the clocks of hosts. It is called before they are used.
func (h *Hosts) NotingClocks(c *Clocks) *Hosts {
	h.clocks = c
	return h
}

// ErrBusy means that another part of this process works on the host.
var ErrBusy = errors.New("the host is being worked on")

// IsHostBusy reports whether nothing was done on a host because it, or as many others as may be, are being worked on,
// or because another operator leads: the same works later, or is that one's.
func IsHostBusy(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, remote.ErrNoPlace) || errors.Is(err, leader.ErrNotLeading)
}

// TargetOf is the address of a host with the account there. ID is that of its record, which has its pinned key.
func (h *Hosts) TargetOf(id record.ID, account, address string) (remote.Target, error) {
	if h.port != "" {
		address = net.JoinHostPort(address, h.port)
	}
	t, err := remote.ParseTarget(account + "@" + address)
	t.ID = string(id)
	return t, err
}

// lockHost takes a host. Release gives it back.
func (h *Hosts) lockHost(address string) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[address] {
		return nil, fmt.Errorf("%w: %s", ErrBusy, address)
	}
	h.busy[address] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.busy, address)
	}, nil
}

// Limits of one call.
const (
	// confirmWithin is how long a host waits to be reached by a new connection before it rolls back.
	confirmWithin = 2 * time.Minute
	// kubeletWithin is how long it waits where its Node has to be Ready too: as long as a node agent waits for that.
	kubeletWithin = 5 * time.Minute
	// runWait is how long to wait for another run on the same host.
	runWait = 30 * time.Second
)

// Wish is what a host should be brought to.
type Wish struct {
	Target remote.Target
	Node   render.Node
	// Inputs render its bundle.
	Inputs *desired.Hosts
	// Check refuses a host by the facts that it reports under its pinned key, before anything is changed there: it must
	// be the host that is meant.
	Check Check
	// Reset returns the name of the Node that a host with these facts, which Check has passed, may stop being. Nil is
	// none: a host that is a node refuses a bundle to join with.
	Reset func(bundle.Facts) string
	// MaxImpact refuses a plan with a higher impact.
	MaxImpact bundle.Impact
	// Reboot reboots the host where the plan needs it.
	Reboot bool
	// Restart are services that RepairHost restarts although nothing about them differs.
	Restart []string
	// Fetch has the host fetch executables before they are sent; its Order is made of Inputs. Nil sends them.
	Fetch *remote.Fetch
	// Confirmation has to confirm what ApplyBundle does, beside that the host is reached over a new connection. Nil is
	// none.
	Confirmation Confirmation
}

// Check refuses a host by its facts.
type Check func(bundle.Facts) error

// Outcome is how it ended.
type Outcome struct {
	protocol.Event
	// Unconfirmed is why Wish.Confirmation did not confirm the run; empty where it did, or was not asked. It holds no
	// secret.
	Unconfirmed string
}

// OtherRunError means that nothing was done on a host because another run changes it: one that another process has
// begun, or that of its node agent.
type OtherRunError struct {
	// Run is the description that the other run has written.
	Run string
}

func (e *OtherRunError) Error() string { return "another run is changing the host: " + e.Run }

// Fix returns what to do.
func (e *OtherRunError) Fix() string {
	return "wait for its end, after which the host is retried; if it does not end, end its process on the host"
}

// unlessLocked returns an *OtherRunError where another run has the host locked.
func unlessLocked(event protocol.Event, err error) (protocol.Event, error) {
	if err == nil && event.LockedBy != "" {
		err = &OtherRunError{event.LockedBy}
	}
	return event, err
}

// RefusedError means that no bundle can be rendered for the host.
type RefusedError struct{ Findings bundle.Findings }

func (e *RefusedError) Error() string {
	first := e.Findings.Sorted()[0]
	text := first.Message
	if n := len(e.Findings) - 1; n > 0 {
		text += fmt.Sprintf("; and %s", bundle.Count(n, "more finding"))
	}
	return text
}

// Fix returns what to do.
func (e *RefusedError) Fix() string { return e.Findings.Sorted()[0].Fix }

// ApplyBundle asks a host for its facts, renders its bundle and applies it. A host in sync costs two commands. Without
// a result, the error tells whether it may work later (remote.IsRetryable).
func (h *Hosts) ApplyBundle(ctx context.Context, w Wish) (Outcome, error) {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	remote.NoteStep(ctx, remote.Step{Text: "connecting", Connects: true})
	agent := h.client.AgentFor(w.Target)
	facts, err := h.askCheckedFacts(ctx, agent, w.Check)
	if err != nil {
		return Outcome{}, err
	}
	// Rendering takes memory: it is done for as many hosts as have a place.
	if err := remote.TakePlace(ctx); err != nil {
		return Outcome{}, err
	}
	request, err := h.renderRequest(w, facts)
	if err != nil {
		return Outcome{}, err
	}
	if w.Reset != nil {
		request.Reset = w.Reset(facts)
	}
	event, unconfirmed, err := h.applyAndConfirm(ctx, w, request, agent)
	if event.Result == protocol.ResultPartial || event.Result == protocol.ResultRefused {
		// Another run may have the host locked, that of an operator which has ended: the next call finds it at its end.
		err = errors.Join(err, h.resumeOverNewConnections(ctx, w, request))
	}
	if event.LockedBy != "" { // which explains more than why it was not resumed
		_, err = unlessLocked(event, nil)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the payload of the operator lacks it", err)
	}
	return Outcome{event, unconfirmed}, err
}

// ResumeInterrupted confirms what a run on a host waits with that an operator has begun which has ended: the host would
// be rolled back otherwise, only to be brought there again.
func (h *Hosts) ResumeInterrupted(ctx context.Context, w Wish) error {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return err
	}
	defer release()
	facts, err := h.askCheckedFacts(ctx, h.client.AgentFor(w.Target), w.Check)
	if err != nil {
		return err
	}
	request, err := h.renderRequest(w, facts)
	if err != nil {
		return err
	}
	return h.resumeOverNewConnections(ctx, w, request)
}

// ForgetAddress drops notes of an address that is no host of the cluster any longer.
func (h *Hosts) ForgetAddress(address string) {
	h.clocks.forgetHost(address)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, address)
}

// renderRequest renders the bundle of a host with its facts.
func (h *Hosts) renderRequest(w Wish, facts bundle.Facts) (remote.Request, error) {
	node, findings := desired.WithFacts(w.Node, facts, w.Target.String())
	list, _, err := w.Inputs.RenderBundles([]render.Node{node})
	if err != nil {
		return remote.Request{}, err
	}
	findings = append(findings, w.Inputs.FindingsFor(w.Node)...)
	if len(list) == 1 {
		findings = append(findings, list[0].Own...)
	}
	if findings.Refused() || len(list) == 0 {
		return remote.Request{}, &RefusedError{onlyErrors(findings)}
	}
	r, err := list[0].ArchiveRequest(archive.NewContents(h.executables...))
	return remote.Request{Manifest: r.Manifest, Source: r.Source, Fetch: w.fetchFor(r.Manifest)}, err
}

func onlyErrors(findings bundle.Findings) bundle.Findings {
	var errs bundle.Findings
	for _, f := range findings {
		if f.Severity == bundle.SeverityError {
			errs = append(errs, f)
		}
	}
	return errs
}

// StageExecutables sends the executables of the wished bundle that the host lacks, while it runs what it has.
func (h *Hosts) StageExecutables(ctx context.Context, w Wish) (protocol.Event, error) {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return protocol.Event{}, err
	}
	defer release()
	agent := h.client.AgentFor(w.Target)
	facts, err := h.askCheckedFacts(ctx, agent, w.Check)
	if err != nil {
		return protocol.Event{}, err
	}
	if err := remote.TakePlace(ctx); err != nil {
		return protocol.Event{}, err
	}
	request, err := h.renderRequest(w, facts)
	if err != nil {
		return protocol.Event{}, err
	}
	return unlessLocked(agent.Stage(ctx, request, runWait))
}

// RepairHost restores on a host what was applied last, from what the host keeps. That starts a node agent that does not
// run. Wish.MaxImpact is the highest impact of it.
func (h *Hosts) RepairHost(ctx context.Context, w Wish) (protocol.Event, error) {
	release, err := h.lockHost(w.Target.Host())
	if err != nil {
		return protocol.Event{}, err
	}
	defer release()
	agent := h.client.AgentFor(w.Target)
	if _, err := h.askCheckedFacts(ctx, agent, w.Check); err != nil {
		return protocol.Event{}, err
	}
	return unlessLocked(agent.Repair(ctx, w.MaxImpact, runWait, w.Restart...))
}

// CleanupHost removes everything managed from a host.
func (h *Hosts) CleanupHost(ctx context.Context, t remote.Target, check Check) (protocol.Event, error) {
	release, err := h.lockHost(t.Host())
	if err != nil {
		return protocol.Event{}, err
	}
	defer release()
	agent := h.client.AgentFor(t)
	if _, err := h.askCheckedFacts(ctx, agent, check); err != nil {
		return protocol.Event{}, err
	}
	return unlessLocked(agent.Cleanup(ctx, runWait))
}

// AskPendingKey asks a host what it is and for which key its kubelet waits. It changes nothing there.
func (h *Hosts) AskPendingKey(ctx context.Context, t remote.Target) (bundle.Facts, remote.PendingKey, error) {
	agent := h.client.AgentFor(t)
	facts, err := h.askFacts(ctx, agent)
	if err != nil {
		return bundle.Facts{}, remote.PendingKey{}, err
	}
	key, err := agent.PendingKey(ctx)
	return facts, key, err
}

// AskAtOtherAddress asks a host what it is at another of its addresses than that at which it is known, over a
// connection of its own. Nothing is noted of an address that a host claims.
func (h *Hosts) AskAtOtherAddress(ctx context.Context, t remote.Target) (bundle.Facts, error) {
	return h.confirms.Observing().AgentFor(t).Facts(ctx)
}

// AskPreflight asks a host what it lacks before it can become a node, after check has found that it is the right one:
// the question has the credentials of registries. It changes nothing there.
func (h *Hosts) AskPreflight(ctx context.Context, t remote.Target, check Check,
	q preflight.Question) (preflight.Answer, error) {
	agent := h.client.AgentFor(t)
	if _, err := h.askCheckedFacts(ctx, agent, check); err != nil {
		return preflight.Answer{}, err
	}
	return agent.Preflight(ctx, q)
}

// Close ends the kept connections.
func (h *Hosts) Close() error { return errors.Join(h.client.Close(), h.confirms.Close()) }
