package published

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
)

// Condition is the type of the Node's condition that the node agent sets. Its reason is the State of the report; its
// heartbeat is renewed while the agent runs.
const Condition = "WindowsBundleApplied"

// SilentAfter is how old the heartbeat of that condition is when the agent counts as silent. Agents report every ten
// minutes.
const SilentAfter = 30 * time.Minute

// State is what a node agent is doing, or why it does not do more. Each is the reason of a condition.
type State string

const (
	// StateUnpublished means that nothing is published for the node yet. The report has the facts, which the operator
	// waits for.
	StateUnpublished State = "Unpublished"
	// StateApplied means that the node has the desired bundle.
	StateApplied State = "Applied"
	// StateApplying means that the bundle is being applied.
	StateApplying State = "Applying"
	// StateNeedsPermission means that the plan has a higher impact than is allowed. Nothing was changed.
	StateNeedsPermission State = "NeedsPermission"
	// StatePayloadMissing means that executables are not on the host yet. Nothing was changed.
	StatePayloadMissing State = "PayloadMissing"
	// StateRebootPending means that some entries take effect only after a reboot.
	StateRebootPending State = "RebootPending"
	// StateRolledBack means that the bundle did not work on this node. It is not retried.
	StateRolledBack State = "RolledBack"
	// StateFailed means that the bundle could not be fetched, read or applied. It is retried.
	StateFailed State = "Failed"
)

// States returns every state.
func States() []State {
	return []State{
		StateUnpublished, StateApplied, StateApplying, StateNeedsPermission, StatePayloadMissing, StateRebootPending,
		StateRolledBack, StateFailed,
	}
}

// Limits of a report: a node must not be able to fill the cluster.
const (
	// MaxMessage is how many bytes a message may have, in an Event too (Shorten).
	MaxMessage = 1 << 10
	maxEntries = 50
)

// Report is the report of a node agent about its host. It is untrusted: it decides about nothing but this node.
type Report struct {
	Schema int `json:"schema"`
	// Program is the version of the node agent.
	Program string `json:"program"`
	State   State  `json:"state"`
	// Desired is the digest of the bundle that State describes. Applied is the digest of the last bundle that was applied
	// completely.
	Desired bundle.Digest `json:"desired,omitempty"`
	Applied bundle.Digest `json:"applied,omitempty"`
	// Layers are the digests of the layers of the Applied bundle: what must stay published while the node has it.
	Layers []bundle.Digest `json:"layers,omitempty"`
	// Impact is the impact of the plan, if it is higher than permitted.
	Impact bundle.Impact `json:"impact,omitempty"`
	// Message is the cause of a failure, for people. It holds no secrets and no contents.
	Message string `json:"message,omitempty"`
	// Cause is why the bundle was rolled back, or is being (StateFailed); empty otherwise.
	Cause Cause `json:"cause,omitempty"`
	// Fault is the kind of the cause, in StateFailed and StateRolledBack. Older agents leave it empty.
	Fault Fault `json:"fault,omitempty"`
	// Log is the end of the log of the service because of which the bundle was rolled back, or is being (StateFailed);
	// empty otherwise. It holds no secrets.
	Log bundle.LogTail `json:"log,omitzero"`
	// Pulled is the number of bytes of layers that were fetched for the desired bundle.
	Pulled int `json:"pulled,omitempty"`
	// Retry is the value of the RetryAnnotation that was acted on last.
	Retry string `json:"retry,omitempty"`
	// Rebooted is the Desired.Boot of the last reboot on request.
	Rebooted bundle.Digest `json:"rebooted,omitempty"`
	// Missing are the paths of executables that are not on the host.
	Missing []string `json:"missing,omitempty"`
	// RebootPending are the entries that take effect only after a reboot.
	RebootPending []bundle.EntryID `json:"rebootPending,omitempty"`
	// Crashed are the names of the services that have crashed since the bundle was applied.
	Crashed []string `json:"crashed,omitempty"`
	// Repaired is the number of entries that had drifted and were restored since the bundle was applied.
	Repaired int `json:"repaired,omitempty"`
	// NetworkRestarts is how often kube-proxy was restarted since the node agent was started, because the Host Network
	// Service of Windows had crashed.
	NetworkRestarts int `json:"networkRestarts,omitempty"`
	// NetworkUnstable is true if the Host Network Service crashed again after the agent had used up its restarts for this
	// hour.
	NetworkUnstable bool `json:"networkUnstable,omitempty"`
	// SSHStopped is why the OpenSSH server of the host does not run; empty while it does, or where the host has none.
	// It holds no secrets.
	SSHStopped string `json:"sshStopped,omitempty"`
	// ImagesUnreachable names the registries that go through the image gateway and from which no image has come for a while, with the reasons; empty
	// for none. It holds no secrets.
	ImagesUnreachable string `json:"imagesUnreachable,omitempty"`
	// Images is how far the host is with the images of bundle.PinnedImagesFile; zero where there is none.
	Images ImageProgress `json:"images,omitzero"`
	// Fetch is how far the host is with the executables that FetchAnnotation names; zero without it.
	Fetch FetchProgress `json:"fetch,omitzero"`
	// Removal is how far the host is with Desired.Remove; zero without it.
	Removal RemovalProgress `json:"removal,omitzero"`
	// Features are what the agent can do that older ones cannot.
	Features []Feature `json:"features,omitempty"`
	// Refused is the digest of the text of the DesiredAnnotation, if the agent refuses it: it is not signed for this node,
	// or is older than one that the agent has accepted. State is StateFailed then, and Desired is the bundle of the refused
	// annotation.
	Refused bundle.Digest `json:"refused,omitempty"`
	// Expired is true in StateNeedsPermission if the operator had permitted the impact, but the permission ran out before
	// the agent started.
	Expired bool `json:"expired,omitempty"`
	// Adopting is true if the host still runs the agent of the existing operator. This operator then writes the report
	// itself, from what it read on the host over SSH.
	Adopting bool `json:"adopting,omitempty"`
	// Facts are those of the host, from which its node layer is rendered.
	Facts *bundle.Facts `json:"facts,omitempty"`
}

// ImageProgress is how far a host is with a list of pinned images.
type ImageProgress struct {
	// List is the digest of the content of bundle.PinnedImagesFile that it is about.
	List bundle.Digest `json:"list,omitempty"`
	// Wanted is the number of images in the list, Present how many of them are on the host.
	Wanted  int `json:"wanted,omitempty"`
	Present int `json:"present,omitempty"`
	// Settled is true when nothing else need wait for the images any longer: all are present, or the missing ones were
	// tried several times.
	Settled bool `json:"settled,omitempty"`
	// Message is why an image is missing, for people.
	Message string `json:"message,omitempty"`
}

// FetchProgress is how far a host is with fetching executables from the operator's image.
type FetchProgress struct {
	// Payload is the digest of the executables that it is about.
	Payload bundle.Digest `json:"payload,omitempty"`
	// Wanted is how many bytes the executables have in the image, Present how many of them are on the host.
	Wanted  int64 `json:"wanted,omitempty"`
	Present int64 `json:"present,omitempty"`
	// Done is true when all are on the host.
	Done bool `json:"done,omitempty"`
	// Failed is true while several tries in a row have brought nothing. It is retried.
	Failed bool `json:"failed,omitempty"`
	// Message is why the last try failed, for people. It holds no secrets.
	Message string `json:"message,omitempty"`
}

// DisplayText is what people read of a fetch that has not ended; empty for any other.
func (p FetchProgress) DisplayText() string {
	if p.Payload == "" || p.Done {
		return ""
	}
	text := fmt.Sprintf("fetching executables: %d of %d MB", p.Present/1e6, p.Wanted/1e6)
	if p.Message != "" {
		text += "; " + p.Message
	}
	return Shorten(text)
}

// withinBounds returns it with numbers that can be true.
func (p FetchProgress) withinBounds() FetchProgress {
	p.Wanted = max(p.Wanted, 0)
	p.Present = min(max(p.Present, 0), p.Wanted)
	p.Message = Shorten(p.Message)
	return p
}

// RemovalProgress is how far a host is with the removal of everything that is managed.
type RemovalProgress struct {
	// Node is the UID of the Node that ends. It is written when the removal begins.
	Node string `json:"node,omitempty"`
	// Done is true when nothing is left on the host but what reports this, which ends itself then.
	Done bool `json:"done,omitempty"`
	// Message is why the last try failed, for people. It is retried. It holds no secrets.
	Message string `json:"message,omitempty"`
}

// IsDoneFor reports whether the host of this Node has been cleaned up.
func (p RemovalProgress) IsDoneFor(node NodeID) bool { return p.Done && p.HasBegunFor(node) }

// HasBegunFor reports whether it is about this Node.
func (p RemovalProgress) HasBegunFor(node NodeID) bool { return p.Node != "" && p.Node == node.UID }

// maxUID is the length of the longest UID that is read, in bytes. That of an API server has 36.
const maxUID = 64

// withinBounds returns it with texts that are not too long.
func (p RemovalProgress) withinBounds() RemovalProgress {
	p.Node, p.Message = ShortenTo(p.Node, maxUID), Shorten(p.Message)
	return p
}

// CountMissing returns how many images are not on the host.
func (p ImageProgress) CountMissing() int { return p.Wanted - p.Present }

// withinBounds returns it with numbers that can be true.
func (p ImageProgress) withinBounds() ImageProgress {
	p.Wanted = min(max(p.Wanted, 0), bundle.MaxPinnedImages)
	p.Present = min(max(p.Present, 0), p.Wanted)
	p.Message = Shorten(p.Message)
	return p
}

// Feature is something that a node agent can do and older ones cannot.
type Feature string

const (
	// FeatureSigned means that the agent accepts only state that is signed for its node, once its host has the keys.
	FeatureSigned Feature = "signed-desired-state"
	// FeatureNodeName means that the agent reads the name of a node in a node layer.
	FeatureNodeName Feature = "node-name"
	// FeatureAuthorizedKeys means that the agent reads authorized keys in a node layer.
	FeatureAuthorizedKeys Feature = "authorized-keys"
	// FeaturePolicies means that the agent reads policies of Windows in a node layer.
	FeaturePolicies Feature = "policies"
	// FeatureAmazonRoutes means that the agent knows the link-local addresses of AWS besides the instance metadata.
	FeatureAmazonRoutes Feature = "amazon-routes"
	// FeaturePinnedImages means that the agent has images pulled and pinned, and reports how far it is.
	FeaturePinnedImages Feature = "pinned-images"
	// FeatureBoot means that the agent boots its host on request, once for each Desired.Boot.
	FeatureBoot Feature = "boot-on-request"
	// FeatureFetch means that the agent fetches executables from the operator's image.
	FeatureFetch Feature = "fetch-executables"
	// FeatureRemove means that the agent removes everything from its host where Desired.Remove is signed for its Node.
	FeatureRemove Feature = "remove"
)

// Features returns what the agents of this version can do on any host. Agents on hosts with a container runtime also
// have FeaturePinnedImages, those that may repair FeatureFetch, and those that run as a service FeatureRemove.
func Features() []Feature {
	return []Feature{FeatureAmazonRoutes, FeatureAuthorizedKeys, FeatureBoot, FeatureNodeName, FeaturePolicies, FeatureSigned}
}

// Has reports whether the agent has a feature.
func (r Report) Has(f Feature) bool { return slices.Contains(r.Features, f) }

// Encode returns the text of the annotation, within its limits. The same report gives the same text.
func (r Report) Encode() (string, error) {
	r.Schema = Schema
	r.Message, r.Retry, r.Log, r.SSHStopped = Shorten(r.Message), Shorten(r.Retry), r.Log.BoundedTail(), Shorten(r.SSHStopped)
	r.ImagesUnreachable, r.Images, r.Fetch = Shorten(r.ImagesUnreachable), r.Images.withinBounds(), r.Fetch.withinBounds()
	r.Removal = r.Removal.withinBounds()
	r.Missing, r.RebootPending, r.Crashed, r.Features = firstEntries(r.Missing), firstEntries(r.RebootPending), firstEntries(r.Crashed), firstEntries(r.Features)
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encoding the report: %w", err)
	}
	if len(text) > maxAnnotation {
		return "", fmt.Errorf("%w: the report has %d bytes, at most %d are allowed", ErrInvalid, len(text), maxAnnotation)
	}
	return string(text), nil
}

// DecodeReport reads what Encode wrote; a state that it does not know is ErrInvalid.
func DecodeReport(text string) (Report, error) {
	var r Report
	if err := decodeAnnotation(text, "report", &r, &r.Schema); err != nil {
		return Report{}, err
	}
	if !slices.Contains(States(), r.State) {
		return Report{}, fmt.Errorf("%w: the state %.50q is unknown", ErrInvalid, r.State)
	}
	for _, d := range append([]bundle.Digest{r.Desired, r.Applied, r.Refused, r.Rebooted, r.Images.List, r.Fetch.Payload}, r.Layers...) {
		if err := d.Validate(); d != "" && err != nil {
			return Report{}, fmt.Errorf("%w: %v", ErrInvalid, err) //nolint:errorlint // one kind of error for all of it
		}
	}
	r.Message, r.Log = Shorten(r.Message), r.Log.BoundedTail()
	r.SSHStopped, r.ImagesUnreachable = Shorten(r.SSHStopped), Shorten(r.ImagesUnreachable)
	r.Images, r.Fetch = r.Images.withinBounds(), r.Fetch.withinBounds()
	r.Removal = r.Removal.withinBounds()
	r.Missing, r.RebootPending, r.Crashed, r.Features = firstEntries(r.Missing), firstEntries(r.RebootPending), firstEntries(r.Crashed), firstEntries(r.Features)
	return r, nil
}

// Shorten shortens a message to what a report holds, 1 KiB, at a character. The message of an Event may have as much
// (k8s.io/kubernetes pkg/apis/core/validation).
func Shorten(text string) string { return ShortenTo(text, MaxMessage) }

// ShortenTo shortens a text to so many bytes, at a character.
func ShortenTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most-3, 0)], "") + "..."
}

// AppendLog adds the end of a log to a message, as much as a report or an Event holds.
func AppendLog(message string, log bundle.LogTail) string {
	message = Shorten(message)
	return message + log.DescribeTail(MaxMessage-len(message))
}

func firstEntries[E any](list []E) []E { return list[:min(len(list), maxEntries)] }
