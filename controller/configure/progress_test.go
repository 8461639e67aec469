package configure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"wmco/applier/remote"
	"wmco/controller/base/leader"
	"wmco/controller/hosts"
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
		p := ProgressOfError(tt.err)
		if p.State != tt.state || !strings.Contains(p.DisplayText(), tt.text) || strings.Contains(p.DisplayText(), "drive") || p.Again > AgainLater {
			t.Errorf("%s: %s %s", name, p.State, p.DisplayText())
		}
		if tt.state == StateWaiting && (p.Reason != ReasonOtherRun || p.Again != AgainSoon) {
			t.Errorf("%s: reason %s, again in %s", name, p.Reason, p.Again)
		}
	}
}

// TestAnOperatorThatStopsIsNoFaultOfAHost: what it was doing ends with an error of the host's connection, or of the API server's.
func TestAnOperatorThatStopsIsNoFaultOfAHost(t *testing.T) {
	for _, err := range []error{
		&remote.InterruptedError{Err: context.Canceled},
		fmt.Errorf("%w (%w)", context.Canceled, &remote.UnreachableError{Err: errors.New("operation was canceled")}),
		&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: context.Canceled},
	} {
		if p := ProgressOfError(fmt.Errorf("running apply: %w", err)); p.State != StateJoining || p.Reason != ReasonCompleting || p.Again == 0 {
			t.Errorf("%v: %+v", err, p)
		}
	}
	for _, err := range []error{
		fmt.Errorf("%w (%w)", remote.ErrNoProgress, &remote.UnreachableError{Err: context.Canceled}), // its place went to another host
		&remote.InterruptedError{Err: &remote.LimitError{Text: "nothing was sent"}},
	} {
		if p := ProgressOfError(err); p.State != StateFailed {
			t.Errorf("%v: %+v", err, p)
		}
	}
}

// TestAnAPIServerThatIsNotWellIsNoFaultOfAHost: it is retried within seconds.
func TestAnAPIServerThatIsNotWellIsNoFaultOfAHost(t *testing.T) {
	for _, err := range []error{
		apierrors.NewInternalError(errors.New("etcd")), apierrors.NewTooManyRequests("", 1), apierrors.NewServiceUnavailable(""),
		&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: io.ErrUnexpectedEOF},
	} {
		p := ProgressOfError(fmt.Errorf("reading the keys: %w", err))
		if p.State != StateWaiting || p.Reason != ReasonAPIError || p.Again > 10*time.Second {
			t.Errorf("%v: %+v", err, p)
		}
	}
	if p := ProgressOfError(fmt.Errorf("reading the body: %w", io.ErrUnexpectedEOF)); p.Again > 10*time.Second {
		t.Errorf("an answer that was cut: again in %s", p.Again)
	}
	if p := ProgressOfError(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil)); p.Reason != ReasonFailed {
		t.Errorf("what is not permitted: %+v", p)
	}
}
