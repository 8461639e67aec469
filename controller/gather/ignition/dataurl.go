package ignition

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
)

var (
	errNotDataURL = errors.New("the contents are not a data URL")
	errBadDataURL = errors.New("the contents are a malformed data URL")
)

// decodeDataURL reads a data URL (RFC 2397): data:[TYPE/SUBTYPE][;NAME=VALUE]...[;base64],DATA. The media type and its
// parameters have no effect and are not checked. Errors do not quote the URL.
func decodeDataURL(s string) ([]byte, error) {
	rest, ok := strings.CutPrefix(s, "data:")
	if !ok {
		return nil, errNotDataURL
	}
	header, data, ok := cutAtComma(rest)
	if !ok {
		return nil, errBadDataURL
	}
	if !onlyURLCharacters(data) {
		return nil, errBadDataURL
	}
	if strings.HasSuffix(header, ";base64") {
		out, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, errBadDataURL
		}
		return out, nil
	}
	// In a path, unlike in a query, a plus sign is not a blank.
	text, err := url.PathUnescape(data)
	if err != nil {
		return nil, errBadDataURL
	}
	return []byte(text), nil
}

// cutAtComma is strings.Cut at the first comma that is not in a quoted string. The value of a parameter may be one.
func cutAtComma(s string) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ',':
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// onlyURLCharacters reports whether s has nothing but the reserved and unreserved characters of RFC 2396 and percent
// signs.
func onlyURLCharacters(s string) bool {
	for _, c := range []byte(s) {
		isAlphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !isAlphanumeric && strings.IndexByte("-_.!~*'();/?:@&=+$,%", c) < 0 {
			return false
		}
	}
	return true
}
