package registry

import (
	"regexp"
	"strings"
)

// challenge is what a registry demands in a WWW-Authenticate header (RFC 9110, 11.6.1).
type challenge struct {
	// scheme is in lower case.
	scheme string
	// parameters are realm, service and scope of a Bearer challenge.
	parameters map[string]string
}

// parameter is one name="value" of a challenge; a quoted value may have escaped characters (RFC 9110, 5.6.4).
var parameter = regexp.MustCompile(`^[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))`)

// chooseChallenge returns the challenge to answer: the first Bearer one, else a Basic one; an empty one if there is neither. A header can hold
// several, and there can be several headers.
func chooseChallenge(headers []string) challenge {
	var basic challenge
	for _, h := range headers {
		for _, c := range parseChallenges(h) {
			switch c.scheme {
			case "bearer":
				return c
			case "basic":
				basic = c
			}
		}
	}
	return basic
}

var scheme = regexp.MustCompile(`^[\s,]*([A-Za-z]+)(?:\s+|$)`)

func parseChallenges(text string) (list []challenge) {
	for {
		m := scheme.FindStringSubmatch(text)
		if m == nil {
			return list
		}
		text = text[len(m[0]):]
		c := challenge{scheme: strings.ToLower(m[1]), parameters: map[string]string{}}
		for {
			p := parameter.FindStringSubmatch(text)
			if p == nil {
				break
			}
			text = text[len(p[0]):]
			value := p[3]
			if value == "" {
				value = escaped.ReplaceAllString(p[2], "$1")
			}
			c.parameters[strings.ToLower(p[1])] = value
		}
		list = append(list, c)
	}
}

var escaped = regexp.MustCompile(`\\(.)`)
