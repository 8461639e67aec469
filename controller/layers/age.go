package layers

import (
	"strconv"
	"time"

	"wmco/bundle/published"
)

const (
	// ReplacedAnnotation of a Secret is since when its layer is wanted no longer, as RFC 3339 in UTC, by the operator's
	// clock. It is for people, and tells one replacement from the next. Nothing is counted from it: clocks are set.
	ReplacedAnnotation = published.Domain + "replaced-at"
	// ReplacedForAnnotation is for how many seconds operators have observed that. Without it they have observed
	// nothing.
	ReplacedForAnnotation = published.Domain + "replaced-for-seconds"
)

// How often an age is written. An operator that is started again counts from there, so each start makes a layer stay
// for at most that much longer.
const (
	noteReadable = time.Hour
	noteKept     = 24 * time.Hour
)

// Age is for how long a layer has been wanted no longer, as operators have observed it on their monotonic clocks. The
// time in which none ran does not count: it keeps a layer longer, and removes none that a node may need.
type Age struct {
	// For is the age, Noted what of it is written on the Secret.
	For, Noted time.Duration
}

// mustBeNoted reports whether an operator that is started later would lose too much of the age. The end of ReadableFor
// is noted at once: what nodes may read no longer does not become readable again.
func (a Age) mustBeNoted() bool {
	switch {
	case a.For < ReadableFor:
		return a.For-a.Noted >= noteReadable
	case a.Noted < ReadableFor:
		return true
	}
	return a.For-a.Noted >= noteKept
}

// inSeconds is the text of ReplacedForAnnotation.
func (a Age) inSeconds() string { return strconv.FormatInt(int64(a.For/time.Second), 10) }

// notedAge returns the age in an annotation of a Secret. A damaged one, or none, counts as zero.
func notedAge(text string) time.Duration {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), int64(KeptFor/time.Second))) * time.Second
}

// ages are what this process has observed, by the name of the Secret.
type ages map[string]*observedAge

type observedAge struct {
	// replaced is the text of ReplacedAnnotation that the age is about, looked when the Secret was looked at last, on
	// the monotonic clock.
	replaced string
	age      Age
	looked   time.Duration
}

// observeAge looks at the annotations of a Secret, and returns its age; false if its layer is wanted.
func (a ages) observeAge(name string, annotations map[string]string, now time.Duration) (Age, bool) {
	replaced, ok := annotations[ReplacedAnnotation]
	if !ok {
		delete(a, name)
		return Age{}, false
	}
	noted := notedAge(annotations[ReplacedForAnnotation])
	o, known := a[name]
	if !known || o.replaced != replaced {
		o = &observedAge{replaced: replaced, looked: now}
		a[name] = o
	}
	o.age = Age{For: max(noted, o.age.For+now-o.looked), Noted: noted}
	o.looked = now
	return o.age, true
}
