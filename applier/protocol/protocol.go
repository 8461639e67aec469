// Package protocol has the answers of a node agent: how the host compares with a bundle, and the events of a run.
package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
)

// Schema is the version of what the node agent prints. Within one version fields are only added; a reader accepts its
// own and all older versions and ignores fields that it does not know.
const Schema = 1

// ComparisonInterval is the time between two comparisons of a node agent with default settings: within it, the agent
// ends an interrupted run.
const ComparisonInterval = 5 * time.Minute

// Observation is the answer of `wmco-node observe` and `verify`: how a host compares with a manifest.
type Observation struct {
	Schema int `json:"schema"`
	// Program is the version of the node agent.
	Program string `json:"program"`
	// Bundle is the digest of the manifest that was asked about.
	Bundle bundle.Digest `json:"bundle"`
	// Applied is the digest of the bundle that was last applied whole, empty on a host that has none.
	Applied bundle.Digest `json:"applied,omitempty"`
	// InSync reports whether nothing differs. Foreign files, Missing contents of files that are right, and a pending
	// reboot do not count.
	InSync bool `json:"inSync"`
	// Impact is the highest of Actions.
	Impact bundle.Impact `json:"impact"`
	// Actions are what apply would do, in its order.
	Actions []Action `json:"actions"`
	// Restarts are the services that would be stopped and started, by name.
	Restarts []string `json:"restarts,omitempty"`
	// Missing are the contents that apply needs and the host lacks.
	Missing []Missing `json:"missing,omitempty"`
	// Foreign are unmanaged files in managed folders. They stay.
	Foreign []string `json:"foreign,omitempty"`
	// Adopt are entries that are right and not managed yet. Applying makes them managed.
	Adopt []bundle.EntryID `json:"adopt,omitempty"`
	// RebootPending are the settings that take effect with the next boot.
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Waiting are endpoints whose HNS network does not exist yet. They do not count as differing.
	Waiting []bundle.EntryID `json:"waiting,omitempty"`
	// Unhealthy are services that should run and do not, or whose probe fails, with the reason. Only verify asks.
	Unhealthy []Unhealthy `json:"unhealthy,omitempty"`
	// Interrupted is the digest of a bundle whose run was interrupted and not resumed yet.
	Interrupted bundle.Digest `json:"interrupted,omitempty"`
	// Notes are what a person should know, such as a damaged ledger.
	Notes []string     `json:"notes,omitempty"`
	Facts bundle.Facts `json:"facts"`
}

// Unhealthy is a service that is not healthy.
type Unhealthy struct {
	Service string `json:"service"`
	Reason  string `json:"reason"`
}

// EventKind is what an event reports.
type EventKind string

const (
	// EventFetching means that the host fetches executables, and has Bytes of AllBytes.
	EventFetching EventKind = "fetching"
	// EventReceived means that a content has arrived and is kept.
	EventReceived EventKind = "received"
	// EventPlan means that the plan is made; Total is the number of its actions, Impact what they cost.
	EventPlan EventKind = "plan"
	// EventAction means that an action is done.
	EventAction EventKind = "action"
	// EventProbe means that a service is healthy, or that its time is up.
	EventProbe EventKind = "probe"
	// EventConfirm means that all services are healthy and that the engine waits for the caller's confirmation.
	EventConfirm EventKind = "confirm"
	// EventNote is something that a person should know.
	EventNote EventKind = "note"
	// EventRollback means that the run is being rolled back; Message has the cause.
	EventRollback EventKind = "rollback"
	// EventResult is the last one.
	EventResult EventKind = "result"
)

// Result is how a run ended.
type Result string

const (
	// ResultSame means that nothing differed and nothing was written.
	ResultSame Result = "same"
	// ResultApplied means that the host matches the bundle.
	ResultApplied Result = "applied"
	// ResultPlanned means that a dry run ended before the first write.
	ResultPlanned Result = "planned"
	// ResultReboot means that the rest waits for the next boot; the first run after it resumes.
	ResultReboot Result = "reboot"
	// ResultHandedOver means that the service of this program was exchanged: its new process ends the run, or
	// bundle.GuardService rolls it back.
	ResultHandedOver Result = "handed over"
	// ResultRolledBack means that the bundle did not work and that the host was rolled back.
	ResultRolledBack Result = "rolled back"
	// ResultPartial means that the host kept the run from finishing; the next run resumes it.
	ResultPartial Result = "partial"
	// ResultRefused means that nothing was done; Message has the cause.
	ResultRefused Result = "refused"
)

// Event is one line of what `wmco-node apply` prints.
type Event struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"`
	Event  EventKind `json:"event"`
	// Bundle is the digest of the bundle, in EventPlan and EventResult.
	Bundle bundle.Digest `json:"bundle,omitempty"`
	// Action is what was done, in EventAction; Done of Total actions are done.
	Action *Action `json:"action,omitempty"`
	Done   int     `json:"done,omitempty"`
	Total  int     `json:"total,omitempty"`
	// Bytes of AllBytes are there, in EventFetching: those of executables as they are stored in the image.
	Bytes    int64 `json:"bytes,omitempty"`
	AllBytes int64 `json:"allBytes,omitempty"`
	// Content is what arrived, in EventReceived.
	Content bundle.Digest `json:"content,omitempty"`
	// Service is the one that EventProbe is about.
	Service string        `json:"service,omitempty"`
	Impact  bundle.Impact `json:"impact,omitempty"`
	// Message is for people. It holds no secret.
	Message string `json:"message,omitempty"`
	Result  Result `json:"result,omitempty"`
	// Log is the end of the log of the service because of which the run is rolled back, in EventRollback and
	// EventResult. It holds no secret.
	Log bundle.LogTail `json:"log,omitzero"`
	// Written and Restarted count files written and services started, in EventResult.
	Written   int `json:"written,omitempty"`
	Restarted int `json:"restarted,omitempty"`
	// RebootPending are settings that take effect with the next boot, in EventResult.
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// DiskFull is true in an EventResult if drive C: had not enough room: no bundle is the reason.
	DiskFull bool `json:"diskFull,omitempty"`
	// Missing are contents that were needed and missing, in a refused EventResult.
	Missing []Missing `json:"missing,omitempty"`
	// LockedBy is the run that has the host locked, in its own words, in an EventResult of a run that could do nothing.
	LockedBy string `json:"lockedBy,omitempty"`
}

// ServiceAction returns the service that an EventAction is about, and whether it has stopped; empty for all other
// events.
func (e Event) ServiceAction() (service string, stopped bool) {
	if e.Event != EventAction || e.Action == nil {
		return "", false
	}
	kind, name, _ := strings.Cut(string(e.Action.Entry), " ")
	if bundle.EntryKind(kind) != bundle.KindService {
		return "", false
	}
	return name, e.Action.Verb == VerbStop
}

// DecodeObservation decodes what observe and verify print. A newer schema is a *bundle.SchemaError.
func DecodeObservation(data []byte) (Observation, error) {
	var o Observation
	err := decodeAnswer(data, "observation", &o)
	return o, err
}

// DecodeEvent decodes one line of what apply prints. A newer schema is a *bundle.SchemaError.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	err := decodeAnswer(line, "event", &e)
	e.Log = e.Log.BoundedTail()
	return e, err
}

// decodeAnswer decodes one JSON value of a node agent. Fields that a newer program of the same schema added are
// ignored.
func decodeAnswer(data []byte, what string, into any) error {
	if err := bundle.CheckSchema(data, what, Schema); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}
