package join

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wmco/applier/remote"
	"wmco/controller/hosts"
	"wmco/controller/leader"
)

// TestWhoeverElseWorksOnAHostIsWaitedFor: nothing has failed, and nothing is advised that is about something else.
func TestWhoeverElseWorksOnAHostIsWaitedFor(t *testing.T) {
	upload := &remote.ProgramError{Err: fmt.Errorf("%w: gone", remote.ErrOtherUpload), Todo: "run it again when the other upload has ended"}
	for name, tt := range map[string]struct {
		err   error
		state State
		text  string
	}{
		"another run":             {fmt.Errorf("applying: %w", &hosts.OtherRunError{Run: "wmco-node apply, process 7"}), StateWaiting, "another run is changing the host: wmco-node apply, process 7"},
		"another upload":          {upload, StateWaiting, "another upload to the host"},
		"another operator leads":  {fmt.Errorf("nothing more is changed on h: %w", &leader.LostError{Lease: "n/lease", Holder: "theirs"}), StateJoining, "n/lease is held by theirs"},
		"another worker of it":    {hosts.ErrBusy, StateJoining, "being worked on"},
		"no one, the host is off": {&remote.UnreachableError{Err: errors.New("refused")}, StateFailed, "refused"},
	} {
		p := failed(tt.err)
		if p.State != tt.state || !strings.Contains(p.Text(), tt.text) || strings.Contains(p.Text(), "drive") || p.Again > againLater {
			t.Errorf("%s: %s %s", name, p.State, p.Text())
		}
		if tt.state == StateWaiting && (p.Reason != ReasonOtherRun || p.Again != againSoon) {
			t.Errorf("%s: reason %s, again in %s", name, p.Reason, p.Again)
		}
	}
}
