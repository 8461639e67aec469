package bundle

import (
	"regexp"
	"slices"
	"strings"
)

// MaskedUser is what stands in place of a user and a password, as in a must-gather of the cluster.
const MaskedUser = "****:****"

var (
	// userInfo is the user and password of an address. It ends at the last @, because a password may hold one; that of
	// a digest is none. JSON may write a slash as \/.
	userInfo = regexp.MustCompile(`:(?:/|\\/){2}[^\s"'<>]*@(?:sha256:)?`)
	// looseUserInfo is the same in a sentence, without a scheme.
	looseUserInfo = regexp.MustCompile(`[^\s"'<>=/@,;:\\]+:[^\s"'<>/@]+@(?:sha256:)?`)
	// keyBegin and keyEnd are around a private key in PEM.
	keyBegin, keyEnd = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`), regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY-----`)
	// token matches credentials without a name: JSON web tokens, and the text after the name of a scheme.
	token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+|(?i:\b(bearer|basic)\s+)[A-Za-z0-9+/=_.-]{16,}`)

	// assigned is a value that is called a secret: password=x, "token": "x", Authorization: Bearer x. A quoted one may
	// hold blanks.
	assigned = regexp.MustCompile(`(?i)((?:passwo?r?d|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization|signature)[\w.-]*\\?["']?\s*[:=]\s*(?:(?:bearer|basic|negotiate)\s+)?\\?|\\?["']auth\\?["']\s*:\s*\\?|[?&]sig=)("[^"\n]*"?|'[^'\n]*'?|[^\s"',;&}]+)`)
	// flagged is the same as a flag of a command.
	flagged = regexp.MustCompile(`(?i)(\s--?[\w-]*(?:password|secret|token)[\w-]*\s+)([^\s-]\S*)`)
	// encoded is a line of nothing but base64, such as one of a key whose first line is not there.
	encoded = regexp.MustCompile(`(?m)^[ \t]*[A-Za-z0-9+/]{40,}={0,2}[ \t\r]*$`)
)

// MaskText removes from a text what can log in.
func MaskText(text string) string {
	text = userInfo.ReplaceAllStringFunc(maskKeys(text), maskUserInfo)
	text = looseUserInfo.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, "@sha256:") {
			return found
		}
		return MaskedUser + "@"
	})
	return token.ReplaceAllString(text, MaskedText)
}

// maskUserInfo masks what userInfo has found, up to the last @ that is not that of a digest.
func maskUserInfo(found string) string {
	for rest := found; ; {
		at := strings.LastIndexByte(rest, '@')
		if at < 0 {
			return found
		}
		if !strings.HasPrefix(found[at:], "@sha256:") {
			return "://" + MaskedUser + found[at:]
		}
		rest = rest[:at]
	}
}

// maskKeys masks private keys in PEM. One expression for a whole key would look for its end once for each match of any
// other: a host could write a log on which that takes days.
func maskKeys(text string) string {
	var out strings.Builder
	for {
		begin := keyBegin.FindStringIndex(text)
		if begin == nil {
			break
		}
		end := keyEnd.FindStringIndex(text[begin[1]:])
		if end == nil {
			break // nor has any that begins later
		}
		out.WriteString(text[:begin[0]] + MaskedText)
		text = text[begin[1]+end[1]:]
	}
	return out.String() + text
}

// MaskLog is MaskText for logs of programs: it also removes values that are named like secrets, and
// control characters but for the ends of lines.
func MaskLog(text string) string {
	text = MaskText(plainLines(text)) // escapes first: one in the middle of a secret would hide it from the masks
	return encoded.ReplaceAllString(maskNamed(text), MaskedText)
}

// secretWords are parts of all names of secrets in assigned and flagged, in lower case.
func secretWords() []string {
	return []string{"passw", "pwd", "secret", "token", "key", "credential", "authorization", "signature", "auth", "sig="}
}

// maskNamed masks values that are named like secrets. The log of a node has up to 10 MiB, so only lines with such a name are
// looked at, each with the next one that is not blank, which may have the value.
func maskNamed(text string) string {
	var out strings.Builder
	words := secretWords()
	written, named, end := 0, -1, 0
	for line := range strings.Lines(text) {
		start := end
		end += len(line)
		lower := strings.ToLower(line)
		switch isNamed := slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) }); {
		case isNamed && named < 0:
			named = max(written, start-1) // a flag has a blank in front, such as the end of the line before
		case !isNamed && named >= 0 && strings.TrimSpace(line) != "":
			last := start + len(strings.TrimSuffix(line, "\n"))
			out.WriteString(text[written:named] + maskValues(text[named:last]))
			written, named = last, -1
		}
	}
	if named < 0 {
		return out.String() + text[written:]
	}
	return out.String() + text[written:named] + maskValues(text[named:])
}

func maskValues(text string) string {
	return flagged.ReplaceAllString(assigned.ReplaceAllString(text, "${1}"+MaskedText), "${1}"+MaskedText)
}
