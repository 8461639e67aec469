package applier

import (
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Schema is the version of what the node program prints. Fields are only added within one version; a reader that knows a
// version reads all older ones and ignores fields that it does not know.
const Schema = 1

// Observation is the answer of `wmco-node observe` and `verify`: how a machine compares with a manifest.
type Observation struct {
	Schema int `json:"schema"`
	// Program is the version of the node program.
	Program string `json:"program"`
	// Bundle is the digest of the manifest that was asked about.
	Bundle bundle.Digest `json:"bundle"`
	// Applied is the digest that was last applied whole, empty on a machine that has none.
	Applied bundle.Digest `json:"applied,omitempty"`
	// InSync tells that nothing differs. Foreign files, Missing contents of files that are right, and a reboot that is
	// pending do not count.
	InSync bool `json:"inSync"`
	// Impact is the highest of Actions.
	Impact bundle.Impact `json:"impact"`
	// Actions are what apply would do, in its order.
	Actions []plan.Action `json:"actions"`
	// Restarts are the services that would be stopped and started, by name.
	Restarts []string `json:"restarts,omitempty"`
	// Missing are the contents that apply needs and the machine lacks.
	Missing []plan.Missing `json:"missing,omitempty"`
	// Foreign are files in our folders that are not ours. They are left alone.
	Foreign []string `json:"foreign,omitempty"`
	// Adopt are entries that are as they should be and that we did not put there. Applying makes them ours.
	Adopt []bundle.EntryID `json:"adopt,omitempty"`
	// RebootPending are the settings that come into force with the next boot.
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Waiting are endpoints whose HNS network no program has made yet. They do not count as differing.
	Waiting []bundle.EntryID `json:"waiting,omitempty"`
	// Unhealthy are services that run and whose probe does not hold, with the reason. Only verify asks.
	Unhealthy []Unhealthy `json:"unhealthy,omitempty"`
	// Interrupted is the digest of a bundle whose application was cut and not taken up since.
	Interrupted bundle.Digest `json:"interrupted,omitempty"`
	// Notes are what a person should know, such as a damaged ledger.
	Notes []string     `json:"notes,omitempty"`
	Facts bundle.Facts `json:"facts"`
}

// Unhealthy is a service whose probe does not hold.
type Unhealthy struct {
	Service string `json:"service"`
	Reason  string `json:"reason"`
}

// EventKind is what an event tells.
type EventKind string

const (
	// EventReceived means that a content arrived and is kept.
	EventReceived EventKind = "received"
	// EventPlan means that the plan is made; Actions says how many there are, Impact what they cost.
	EventPlan EventKind = "plan"
	// EventAction means that an action is done.
	EventAction EventKind = "action"
	// EventProbe means that a service is healthy, or still not.
	EventProbe EventKind = "probe"
	// EventConfirm means that everything is healthy and that the caller's confirmation is awaited.
	EventConfirm EventKind = "confirm"
	// EventNote tells what a person should know.
	EventNote EventKind = "note"
	// EventRollback means that what was done is being undone, Message says why.
	EventRollback EventKind = "rollback"
	// EventResult is the last one.
	EventResult EventKind = "result"
)

// Result is how an application ended.
type Result string

const (
	// ResultSame means that nothing differed, nothing was written.
	ResultSame Result = "same"
	// ResultApplied means that the machine is as the bundle says.
	ResultApplied Result = "applied"
	// ResultPlanned means that a dry run ended before the first write.
	ResultPlanned Result = "planned"
	// ResultReboot means that the rest waits for the next boot of the machine; the run after it takes it up.
	ResultReboot Result = "reboot"
	// ResultRolledBack means that the bundle did not work; the machine is as it was.
	ResultRolledBack Result = "rolled back"
	// ResultPartial means that the machine kept it from being done, in part or at all; the next run takes it up.
	ResultPartial Result = "partial"
	// ResultRefused means that nothing was done; Message says why.
	ResultRefused Result = "refused"
)

// Event is one line of what `wmco-node apply` prints.
type Event struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"`
	Event  EventKind `json:"event"`
	// Bundle is the digest of the bundle, in EventPlan and EventResult.
	Bundle bundle.Digest `json:"bundle,omitempty"`
	// Action is what was done, in EventAction; Done of Total are.
	Action *plan.Action `json:"action,omitempty"`
	Done   int          `json:"done,omitempty"`
	Total  int          `json:"total,omitempty"`
	// Content is what arrived, in EventReceived.
	Content bundle.Digest `json:"content,omitempty"`
	// Service is the one that a probe asks about.
	Service string        `json:"service,omitempty"`
	Impact  bundle.Impact `json:"impact,omitempty"`
	// Message is for people. It holds no secret.
	Message string `json:"message,omitempty"`
	Result  Result `json:"result,omitempty"`
	// Written and Restarted count files written and services started, in EventResult.
	Written   int `json:"written,omitempty"`
	Restarted int `json:"restarted,omitempty"`
	// RebootPending: settings come into force with the next boot, in EventResult.
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Missing: contents that were needed and had not come, in a refused EventResult.
	Missing []plan.Missing `json:"missing,omitempty"`
}

// DecodeObservation reads what observe and verify print. A newer schema is a *bundle.SchemaError.
func DecodeObservation(data []byte) (Observation, error) {
	var o Observation
	err := decodeAnswer(data, "observation", &o)
	return o, err
}

// DecodeEvent reads one line of what apply prints. A newer schema is a *bundle.SchemaError.
func DecodeEvent(line []byte) (Event, error) {
	var e Event
	err := decodeAnswer(line, "event", &e)
	return e, err
}
