package records

import (
	"context"
	"fmt"
	"time"

	"wmco/bundle"
)

// maxBoots is how many requests are remembered.
const maxBoots = 50

// Boots are the boots of the host that a person asked for. They outlive the process, so that a request boots the host
// once.
type Boots struct {
	Schema  int       `json:"schema"`
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	// Begun is the request for which a boot was begun last, and Boot the boot time of the host then: with another boot
	// time, it was done.
	Begun bundle.Digest `json:"begun,omitempty"`
	Boot  string        `json:"boot,omitempty"`
	// Done are the requests of before, the latest first.
	Done []bundle.Digest `json:"done,omitempty"`
}

// ReadBoots returns a zero value where there is none, or none that counts.
func ReadBoots(ctx context.Context, host Files) (Boots, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return Boots{}, err
	}
	r := &Records{Untrusted: bad}
	if !r.isTrusted(FileBoots) {
		return Boots{}, nil
	}
	var b Boots
	err = DecodeFile(ctx, host, FileBoots, "record of boots", &b)
	for _, d := range append(b.Done, b.Begun) {
		if err == nil && d != "" {
			err = d.Validate()
		}
	}
	if err != nil {
		return Boots{}, r.tolerateDamage(err, "")
	}
	return b, nil
}

// WriteBoots replaces it.
func WriteBoots(ctx context.Context, host Files, b Boots) error {
	b.Schema, b.Done = sharedSchema, b.Done[:min(len(b.Done), maxBoots)]
	if err := ReplaceFile(ctx, host, FileBoots, b); err != nil {
		return fmt.Errorf("writing the record of boots: %w", err)
	}
	return nil
}
