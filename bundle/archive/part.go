package archive

import (
	"fmt"
	"regexp"
	"strconv"
)

// Part is a piece of a content's stored form. Its name serves as the name of a file.
//
// Parts of one content that were made by different versions of the compressor do not fit together. Decode finds that
// out, and then all of them have to be sent again.
type Part struct {
	// SHA256 is that of the raw bytes of the whole content.
	SHA256 string
	// Index counts from 1; Of is the number of parts.
	Index, Of int
}

// Name returns the name of the part, such as "<64 hex digits>-003of006". The names of one content's parts are in the
// order of its parts.
func (p Part) Name() string { return fmt.Sprintf("%s-%03dof%03d", p.SHA256, p.Index, p.Of) }

var partName = regexp.MustCompile(`^([0-9a-f]{64})-([0-9]{3})of([0-9]{3})$`)

// ParsePart returns the part with this name.
func ParsePart(name string) (Part, error) {
	fields := partName.FindStringSubmatch(name)
	if fields == nil {
		return Part{}, fmt.Errorf("%s is not the name of a part", shownName(name))
	}
	index, of := parseNumber(fields[2]), parseNumber(fields[3])
	if index < 1 || index > of {
		return Part{}, fmt.Errorf("%s is not the name of a part: there is no part %d of %d", shownName(name), index, of)
	}
	return Part{SHA256: fields[1], Index: index, Of: of}, nil
}

// shownName returns a name for an error, without the plain SHA-256 in the name of a part: it may be a secret's.
func shownName(name string) string {
	return fmt.Sprintf("%.100q", anySHA256.ReplaceAllString(name, "(SHA-256)"))
}

var anySHA256 = regexp.MustCompile(`[0-9a-fA-F]{64}`)

// parseNumber reads three digits, which the pattern has checked.
func parseNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}
