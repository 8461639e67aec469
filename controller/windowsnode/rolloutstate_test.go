package windowsnode

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func TestRolloutState(t *testing.T) {
	var s RolloutState
	digest := func(i int) bundle.Digest { return bundle.Of([]byte(strconv.Itoa(i))) }
	ago := func(minutes int) time.Time { return noon().Add(-time.Duration(minutes) * time.Minute) }
	for i := range 9 {
		s = s.WithTurn(Turn{Bundle: digest(i), Begun: ago(i), Permitted: ago(i)}, s.Turn)
	}
	s.Slot = Slot{Taken: ago(1), Held: true}
	text := encode(t, s)
	got, err := DecodeRolloutState(text)
	s.Schema = rolloutSchema
	if err != nil || !cmp.Equal(s, got) || len(got.Past) != maxPastTurns || got.Past[0].Bundle != digest(7) || len(text) > 4<<10 {
		t.Errorf("%v: %s\n%s", err, text, cmp.Diff(s, got))
	}
	for _, bad := range []string{"{", "[]", `{"schema":0}`, `{"schema":1,"turn":3}`, `{"schema":1}` + strings.Repeat(" ", maxRolloutState)} {
		if _, err := DecodeRolloutState(bad); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
	if got, err := DecodeRolloutState(""); err != nil || !cmp.Equal(got, RolloutState{}) {
		t.Errorf("no state: %+v, %v", got, err)
	}
}
