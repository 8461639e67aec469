package bundle

import "strings"

// NearestWord returns the one of the words that a misspelt word is probably meant to be: it differs in upper and lower
// case, or in a few letters, at most one of three. None is empty.
func NearestWord(word string, words []string) string {
	best, nearest := max(1, min(2, len(word)/3))+1, ""
	for _, w := range words {
		if len(word) > len(w)+best || len(w) > len(word)+best {
			continue // too many letters are missing, however long the word is
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(w)); d < best {
			best, nearest = d, w
		}
	}
	return nearest
}

// editDistance is the number of bytes to insert, delete, replace or exchange with the next that make b of a (optimal
// string alignment).
func editDistance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			now[j] = min(replaced, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

// DidYouMean is the question after a message about a misspelt word, with a blank before it; empty where no word is
// near.
func DidYouMean(word string, words []string) string {
	if w := NearestWord(word, words); w != "" {
		return "; did you mean " + w + "?"
	}
	return ""
}
