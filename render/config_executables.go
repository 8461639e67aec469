package render

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"wmco/bundle"
)

// ExecutablesFrom is where a node that has joined gets executables from.
type ExecutablesFrom string

const (
	// ExecutablesFromAny is the operator's image, and the operator over SSH where that cannot be fetched from.
	ExecutablesFromAny ExecutablesFrom = "Any"
	// ExecutablesFromRegistry is the operator's image alone.
	ExecutablesFromRegistry ExecutablesFrom = "Registry"
	// ExecutablesFromSSH is the operator over SSH alone.
	ExecutablesFromSSH ExecutablesFrom = "SSH"
)

// ExecutableSettings are about how nodes get executables.
type ExecutableSettings struct {
	From ExecutablesFrom `json:"from"`
	// Image has the executables of the operator's version, by digest; empty is the image that the operator runs.
	Image string `json:"image,omitempty"`
}

func (x ExecutableSettings) checkValues() bundle.Findings {
	var findings bundle.Findings
	if !slices.Contains([]ExecutablesFrom{ExecutablesFromAny, ExecutablesFromRegistry, ExecutablesFromSSH}, x.From) {
		findings = append(findings, invalidSetting("executables.from", "%q is none of Any, Registry and SSH", x.From))
	}
	if err := bundle.CheckImageByDigest(x.Image); x.Image != "" && err != nil {
		findings = append(findings, invalidSetting("executables.image", "%v", err))
	}
	return findings
}

// fetchBytes is FetchRate as a number.
func (r RolloutSettings) fetchBytes() (int64, error) {
	q, err := resource.ParseQuantity(r.FetchRate)
	if err != nil {
		return 0, err
	}
	n, whole := q.AsInt64()
	if !whole || n != 0 && (n < 16<<10 || n > 1<<40) {
		return 0, errors.New("out of range")
	}
	return n, nil
}
