package published

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"wmco/bundle"
)

// Schema is the version of the annotations. Within one version fields are only added; a reader accepts its own and all
// older versions, and ignores fields that it does not know.
const Schema = 1

// Keys of the domain that the existing operator uses.
const (
	domain = "windowsmachineconfig.openshift.io/"
	// Domain begins the keys of all annotations and labels of the operator.
	Domain = domain
	// DesiredAnnotation of a Node holds a Desired.
	DesiredAnnotation = domain + "desired-bundle"
	// ReportAnnotation of a Node holds a Report.
	ReportAnnotation = domain + "bundle-report"
	// RetryAnnotation of a Node requests a retry of a bundle that was rolled back. Each new value is one request.
	RetryAnnotation = domain + "retry"
	// RebootAnnotation of a Node requests a reboot of its host. Each new value is one request. The operator drains the
	// node and signs the request; agents do not read the annotation.
	RebootAnnotation = domain + "reboot"
	// FetchAnnotation of a Node permits its agent to fetch the executables that have this digest, by the list of its
	// bundle. The operator permits it to some nodes at a time. Whoever writes it makes a node fetch earlier what it is to
	// fetch, and nothing else.
	FetchAnnotation = domain + "fetch-executables"
	// ReasonNotFetched is the reason of Events about executables that could not be fetched.
	ReasonNotFetched = "ExecutablesNotFetched"
	// LayerLabel of a Secret is the digest of the layer that it holds a part of, without its algorithm and shortened to
	// the length of a label.
	LayerLabel = domain + "layer"
	// SecretType is the type of such a Secret, and SecretKey its one key.
	SecretType = domain + "layer"
	SecretKey  = "part"
)

// maxAnnotation is the size of the largest annotation that is read, in bytes. An API server limits all annotations of
// an object together to 256 KiB (k8s.io/apimachinery, TotalAnnotationSizeLimitB).
const maxAnnotation = 64 << 10

// ErrInvalid means that an annotation or a layer is not one that this package wrote.
var ErrInvalid = errors.New("invalid")

// Desired is what a node should have. It is one annotation, so that its parts always belong together.
type Desired struct {
	Schema int `json:"schema"`
	// Bundle is the digest of the digests of both layers.
	Bundle bundle.Digest `json:"bundle"`
	// MaxImpact is the highest impact that is allowed for exactly this bundle. If the plan needs a higher impact, the node
	// changes nothing and reports the impact that it needs.
	MaxImpact bundle.Impact `json:"maxImpact"`
	// Namespace is where the Secrets are.
	Namespace string `json:"namespace"`
	Cluster   Layer  `json:"cluster"`
	Node      Layer  `json:"node"`
	// Inputs lists which inputs of type Input, whose deletion needs a confirmation, went into the bundle. Agents ignore
	// it.
	Inputs []Input `json:"inputs,omitempty"`
	// Urgent makes the agent apply the bundle even if the Node is paused. The agent then changes only what differs between
	// this bundle and the last applied one; it does not repair drift. An agent that does not know the field leaves a
	// paused node as it is.
	Urgent bool `json:"urgent,omitempty"`
	// Payload is the digest of the executables that the operator shipped when it rendered the bundle. Agents do not
	// need it.
	Payload bundle.Digest `json:"payload,omitempty"`
	// Boot is a reboot request. The agent reboots its host once for each value, if MaxImpact is reboot and the annotation
	// is signed. The value is the digest of that of the RebootAnnotation, or a digest that the operator chose because
	// Windows needs a reboot.
	Boot bundle.Digest `json:"boot,omitempty"`
	// Remove ends the node: its agent removes everything that is managed from the host, also where the Node is paused. It
	// counts only if it is signed for the UID of the Node (IsSignedToRemove), and is never taken back for that UID: who
	// restores an annotation of before changes nothing.
	Remove bool `json:"remove,omitempty"`
	// NodeName is the name of the Node that it is for.
	NodeName string `json:"nodeName,omitempty"`
	// NodeUID is the UID of that Node. It keeps an annotation that was signed for a deleted Node from being valid for a new
	// Node with the same name. Older operators leave it empty.
	NodeUID string `json:"nodeUID,omitempty"`
	// Term and Sequence are its Counter.
	Term     int64 `json:"term,omitempty"`
	Sequence int64 `json:"sequence,omitempty"`
	// PermitFor is the number of seconds in which the agent may start a change with impact drain or reboot, counted from
	// when it first read this annotation, by the clock of its host. Zero: no limit.
	PermitFor int64 `json:"permitFor,omitempty"`
}

// Counter returns when it was written, in the order of everything that is published for its node.
func (d Desired) Counter() Counter { return Counter{d.Term, d.Sequence} }

// SaysTheSame reports whether two say the same apart from when they were written: their counters and for how long they
// permit.
func (d Desired) SaysTheSame(other Desired) bool {
	return d.Bundle == other.Bundle && d.MaxImpact == other.MaxImpact && d.Urgent == other.Urgent &&
		d.NodeName == other.NodeName && d.NodeUID == other.NodeUID && d.Boot == other.Boot && d.Remove == other.Remove &&
		d.Namespace == other.Namespace && d.Payload == other.Payload && slices.Equal(d.Inputs, other.Inputs) &&
		d.Cluster.saysTheSame(other.Cluster) && d.Node.saysTheSame(other.Node)
}

func (l Layer) saysTheSame(other Layer) bool {
	return l.Digest == other.Digest && l.Parts == other.Parts && bytes.Equal(l.Inline, other.Inline)
}

// Layer is the location of a packed layer.
type Layer struct {
	Digest bundle.Digest `json:"digest"`
	// Inline is the packed layer, if it is small.
	Inline []byte `json:"inline,omitempty"`
	// Parts is the number of Secrets that hold it otherwise.
	Parts int `json:"parts,omitempty"`
}

// Encode returns the text of the annotation. The same value gives the same text.
func (d Desired) Encode() (string, error) {
	d.Schema = Schema
	if err := d.checkValues(); err != nil {
		return "", err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encoding the desired bundle: %w", err)
	}
	if len(text) > maxAnnotation {
		return "", fmt.Errorf("%w: the annotation has %d bytes, at most %d are allowed", ErrInvalid, len(text), maxAnnotation)
	}
	return string(text), nil
}

// DecodeDesired reads what Encode wrote. The annotation of a newer program is a *bundle.SchemaError, anything else that
// cannot be used is ErrInvalid.
func DecodeDesired(text string) (Desired, error) {
	var d Desired
	if err := decodeAnnotation(text, "desired bundle", &d, &d.Schema); err != nil {
		return Desired{}, err
	}
	return d, d.checkValues()
}

// decodeAnnotation reads an annotation; schema points to the version in the result. The usual one is read once: a
// thousand nodes have two thousand.
func decodeAnnotation(text, what string, into any, schema *int) error {
	if len(text) > maxAnnotation {
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are allowed", ErrInvalid, what, len(text), maxAnnotation)
	}
	wrong := json.Unmarshal([]byte(text), into)
	if wrong == nil && *schema >= 1 && *schema <= Schema {
		return nil
	}
	// A newer form may have other kinds of values in the same fields.
	if err := bundle.CheckSchema([]byte(text), what, Schema); err != nil {
		if newer := (*bundle.SchemaError)(nil); errors.As(err, &newer) {
			return err
		}
		return fmt.Errorf("%w: %v", ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	return fmt.Errorf("%w: the %s is not JSON of the right form: %v", ErrInvalid, what, wrong) //nolint:errorlint // as above
}

func (d Desired) checkValues() error {
	if d.MaxImpact.Rank() > bundle.ImpactReboot.Rank() {
		return fmt.Errorf("%w: the impact %q is unknown", ErrInvalid, d.MaxImpact)
	}
	if d.Term < 0 || d.Sequence < 0 || d.PermitFor < 0 {
		return fmt.Errorf("%w: a negative counter or time", ErrInvalid)
	}
	if err := d.Boot.Validate(); d.Boot != "" && err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err) //nolint:errorlint // one kind of error for all of it
	}
	for _, l := range []Layer{d.Cluster, d.Node} {
		if err := l.checkValues(); err != nil {
			return err
		}
	}
	whole, err := bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest)
	if err != nil {
		return err
	}
	if whole != d.Bundle {
		return fmt.Errorf("%w: the bundle of these layers is %s, not %s", ErrInvalid, whole.Short(), d.Bundle.Short())
	}
	return nil
}

func (l Layer) checkValues() error {
	if err := l.Digest.Validate(); err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err) //nolint:errorlint // one kind of error for all of it
	}
	switch {
	case l.Digest == bundle.Masked || l.Digest.Keyed():
		return fmt.Errorf("%w: %q is not the digest of a layer", ErrInvalid, string(l.Digest))
	case (len(l.Inline) > 0) == (l.Parts > 0):
		return fmt.Errorf("%w: layer %s is neither inline nor in Secrets alone", ErrInvalid, l.Digest.Short())
	case len(l.Inline) > MaxInline || l.Parts < 0 || l.Parts > maxParts:
		return fmt.Errorf("%w: layer %s is larger than a layer can be", ErrInvalid, l.Digest.Short())
	}
	return nil
}
