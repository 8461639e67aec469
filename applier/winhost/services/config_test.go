package services

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/bundle"
)

func TestStartTypes(t *testing.T) {
	for _, start := range []bundle.StartType{bundle.StartAuto, plan.StartManual, plan.StartDisabled} {
		n, err := startNumber(start)
		if err != nil || startName(n) != start {
			t.Errorf("%s is %d, %v, which is %s", start, n, err, startName(n))
		}
	}
	if n, err := startNumber("boot"); err == nil {
		t.Errorf("an unknown start type is %d", n)
	}
	if got := startName(0); got != "type 0" {
		t.Errorf("the start type of a driver is %s", got)
	}
}

func TestStatusName(t *testing.T) {
	want := map[uint32]plan.ServiceStatus{
		1: plan.ServiceStopped, 2: plan.ServicePending, 3: plan.ServicePending, 4: plan.ServiceRunning,
		5: plan.ServicePending, 6: plan.ServicePending, 7: plan.ServicePending,
	}
	for state, status := range want {
		if got := statusName(state); got != status {
			t.Errorf("state %d is %q, want %q", state, got, status)
		}
	}
}

func TestFailureActions(t *testing.T) {
	tests := map[string]bundle.Recovery{
		"none":                         {},
		"only a reset":                 {ResetSeconds: 300},
		"one restart":                  {RestartAfterSeconds: []int{10}},
		"several, one without a delay": {RestartAfterSeconds: []int{0, 10, 30, 60, 120}, ResetSeconds: 300},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodeFailureActions(encodeFailureActions(want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in the registry (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, recoveryOf(uint32(want.ResetSeconds), failureActions(want))); diff != "" {
				t.Errorf("as actions (-want +got):\n%s", diff)
			}
		})
	}
	reboot := recoveryOf(0, []failureAction{{Type: 2, Delay: 5000}, {Type: actionRestart, Delay: 1999}})
	if diff := cmp.Diff(bundle.Recovery{RestartAfterSeconds: []int{-1, 1}}, reboot); diff != "" {
		t.Errorf("an action that reboots (-want +got):\n%s", diff)
	}
}

func TestCorruptFailureActionsAreRefused(t *testing.T) {
	whole := encodeFailureActions(bundle.Recovery{RestartAfterSeconds: []int{1, 2}})
	for n := range len(whole) {
		if r, err := decodeFailureActions(whole[:n]); err == nil {
			t.Errorf("%d bytes are %+v", n, r)
		}
	}
	whole[15] = 0xff
	if r, err := decodeFailureActions(whole); err == nil {
		t.Errorf("a count beyond the end is %+v", r)
	}
}

func FuzzDecodeFailureActions(f *testing.F) {
	f.Add(encodeFailureActions(bundle.Recovery{RestartAfterSeconds: []int{1, 2}, ResetSeconds: 3}))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = decodeFailureActions(data) })
}

func TestMultiString(t *testing.T) {
	tests := map[string]struct {
		list []string
		want []uint16
	}{
		"empty": {nil, []uint16{0, 0}},
		"one":   {[]string{"ab"}, []uint16{'a', 'b', 0, 0}},
		"two":   {[]string{"a", "ö"}, []uint16{'a', 0, 'ö', 0, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, multiString(tt.list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"A=2", "B=1"}, sortedEnvironment([]string{"B=1", "A=2"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sortedEnvironment([]string{}); got != nil {
		t.Errorf("an empty list, sorted: %#v", got)
	}
}
