package places

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
)

// TroubleFile is where the gateway lists the registries that it cannot pull from. The node agent reports them.
const TroubleFile = State + `\trouble.json`

const (
	// TroubleAfter is for how long no place of a registry answers until it is listed: a registry that restarts is not.
	TroubleAfter = 10 * time.Minute
	// troubleEnds is how long an entry counts after the last try: nothing may need images of the registry any longer.
	troubleEnds = time.Hour
	maxTroubles = 64
)

// Trouble is a registry whose images have come from no place for a while.
type Trouble struct {
	// Registry is the host of the names of images.
	Registry string `json:"registry"`
	// Since is the first try without an answer, Last the newest one.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Reason is what the places said to the newest try. It has no secrets.
	Reason string `json:"reason"`
}

// troubleFile is the JSON of the list.
type troubleFile struct {
	Schema int       `json:"schema"`
	List   []Trouble `json:"registries"`
}

// EncodeTroubles returns the content of TroubleFile. It lists at most 64 registries.
func EncodeTroubles(list []Trouble) ([]byte, error) {
	text, err := json.MarshalIndent(troubleFile{schema, list[:min(len(list), maxTroubles)]}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding registries without a place: %w", err)
	}
	return append(text, '\n'), nil
}

// DescribeTroubles returns what the file lists, for people; empty for none. A file that cannot be read is an error.
func DescribeTroubles(data []byte, now time.Time) (string, error) {
	const what = "registries without a place"
	if len(bytes.TrimSpace(data)) == 0 {
		return "", nil
	}
	if err := bundle.CheckSchema(data, what, schema); err != nil {
		return "", err
	}
	var f troubleFile
	if json.Unmarshal(data, &f) != nil {
		return "", errors.New("reading " + what + ": it is not JSON of the right form")
	}
	var parts []string
	for _, t := range f.List[:min(len(f.List), maxTroubles)] {
		if now.Sub(t.Last) < troubleEnds {
			parts = append(parts, fmt.Sprintf("%s since %s (%s)", t.Registry, t.Since.UTC().Format(time.RFC3339), t.Reason))
		}
	}
	return strings.Join(parts, "; "), nil
}
