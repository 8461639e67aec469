package layers

import (
	"strconv"
	"time"

	"wmco/bundle/published"
)

const (
	// ReplacedAnnotation of a Secret is the time since when its layer is no longer wanted (RFC 3339, UTC). It identifies a
	// replacement and informs people. Ages are not computed from it, because clocks can be set.
	ReplacedAnnotation = published.Domain + "replaced-at"
	// ReplacedForAnnotation is the age in seconds that operators have counted since then. Without it the age is zero.
	ReplacedForAnnotation = published.Domain + "replaced-for-seconds"
)

// How often an age is written. A restarted operator continues from the written age, so each restart keeps a layer for at
// most this much longer.
const (
	noteReadable = time.Hour
	noteKept     = 24 * time.Hour
)

// Age is how long a layer has not been wanted, counted by running operators on their monotonic clocks. Time without a
// running operator does not count, so a layer is rather kept too long.
type Age struct {
	// For is the age, Noted the age that is written on the Secret.
	For, Noted time.Duration
}

// mustBeNoted reports whether a restarted operator would lose too much of the age. The end of ReadableFor is written at
// once, so that a layer does not become readable again.
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

// ages are the ages that this process has counted, by the name of the Secret.
type ages map[string]*observedAge

type observedAge struct {
	// replaced is the ReplacedAnnotation of the age, looked the time of the last look on the monotonic clock.
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
