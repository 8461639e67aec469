package render

import (
	"strings"
	"testing"
	"time"

	"wmco/bundle"
)

func TestWindowsOpenInTheirTimeZone(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	saturday := RolloutWindow{Start: "0 22 * * 6", Duration: "4h", TimeZone: "Europe/Berlin"}
	sunday := RolloutWindow{Start: "0 2 * * 0", Duration: "4h", TimeZone: "Europe/Berlin"}
	nightly := RolloutWindow{Start: "30 1 * * *", Duration: "2h", Impacts: []bundle.Impact{bundle.ImpactRestart}}
	for _, c := range []struct {
		windows []RolloutWindow
		impact  bundle.Impact
		now     string
		// want is when it may begin; empty is now.
		want string
	}{
		{nil, bundle.ImpactReboot, "2026-07-03T12:00:00Z", ""},
		{[]RolloutWindow{saturday}, bundle.ImpactNone, "2026-07-03T12:00:00Z", ""},
		{[]RolloutWindow{saturday}, bundle.ImpactRestart, "2026-07-03T12:00:00Z", "2026-07-04T20:00:00Z"},
		{[]RolloutWindow{saturday}, bundle.ImpactReboot, "2026-07-04T19:59:59Z", "2026-07-04T20:00:00Z"},
		{[]RolloutWindow{saturday}, bundle.ImpactReboot, "2026-07-04T20:00:00Z", ""},
		{[]RolloutWindow{saturday}, bundle.ImpactDrain, "2026-07-04T23:59:59Z", ""},
		{[]RolloutWindow{saturday}, bundle.ImpactDrain, "2026-07-05T00:00:00Z", "2026-07-11T20:00:00Z"},
		{[]RolloutWindow{saturday}, bundle.ImpactDrain, "2026-12-04T12:00:00Z", "2026-12-05T21:00:00Z"}, // without summer time
		{[]RolloutWindow{nightly}, bundle.ImpactDrain, "2026-07-03T12:00:00Z", ""},                      // no window is for drains
		{[]RolloutWindow{nightly}, bundle.ImpactRestart, "2026-07-03T12:00:00Z", "2026-07-04T01:30:00Z"},
		{[]RolloutWindow{saturday, nightly}, bundle.ImpactRestart, "2026-07-03T12:00:00Z", "2026-07-04T01:30:00Z"},
		{[]RolloutWindow{saturday, nightly}, bundle.ImpactRestart, "2026-07-04T02:00:00Z", ""},
		{[]RolloutWindow{saturday, nightly}, bundle.ImpactDrain, "2026-07-04T02:00:00Z", "2026-07-04T20:00:00Z"},
		// The clock skips 02:00 to 03:00 on 2027-03-28, and has it twice on 2027-10-31.
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z"},
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-03-28T04:59:59Z", ""},
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-03-28T05:00:00Z", "2027-04-04T00:00:00Z"},
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-10-30T12:00:00Z", "2027-10-31T00:00:00Z"},
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-10-31T03:59:59Z", ""},
		{[]RolloutWindow{sunday}, bundle.ImpactDrain, "2027-10-31T04:00:00Z", "2027-11-07T01:00:00Z"},
		{[]RolloutWindow{{Start: "30 2 28 3 *", Duration: "1h", TimeZone: "Europe/Berlin"}}, bundle.ImpactDrain, "2027-01-01T00:00:00Z", "2027-03-28T01:00:00Z"},
		{[]RolloutWindow{{Start: "0 3 * * 0", Duration: "1h", TimeZone: "Europe/Berlin"}}, bundle.ImpactDrain, "2027-10-31T00:30:00Z", "2027-10-31T02:00:00Z"},
		{[]RolloutWindow{{Start: "0 0 * * 0", Duration: "1h", TimeZone: "Africa/Cairo"}}, bundle.ImpactDrain, "2026-04-23T21:30:00Z", "2026-04-25T21:00:00Z"},
	} {
		got, want := RolloutSettings{Windows: c.windows}.NextStart(c.impact, at(c.now)), time.Time{}
		if c.want != "" {
			want = at(c.want)
		}
		if !got.Equal(want) {
			t.Errorf("%v, %s at %s: %s, want %s", c.windows, c.impact, c.now, got, want)
		}
	}
}

func TestWindowsThatCannotBeUsedAreRefused(t *testing.T) {
	ref := bundle.Ref{Kind: "ConfigMap", Name: SettingsConfigMap}
	for window, field := range map[string]string{
		`{start: "0 22 * * 6", duration: 4h, timeZone: Europe/Berlin, impacts: [drain, reboot]}`: "",
		`{start: "0 22 * *", duration: 4h}`:                              "start",
		`{start: "", duration: 4h}`:                                      "start",
		`{start: "@daily", duration: 4h}`:                                "start",
		`{start: "CRON_TZ=UTC 0 22 * * 6", duration: 4h}`:                "start",
		`{start: "0 22 30 2 *", duration: 4h}`:                           "start",
		`{start: "0 22 * * 6", duration: 4h, timeZone: Europe/Atlantis}`: "start",
		`{start: "0 2 * *", duration: 4h, timeZone: "UTC 0"}`:            "start",
		`{start: "0 22 * * 6", duration: 4h, timeZone: Local}`:           "start",
		`{start: "0 22 * * 6", duration: 30s}`:                           "duration",
		`{start: "0 22 * * 6", duration: 200h}`:                          "duration",
		`{start: "0 22 * * 6"}`:                                          "duration",
		`{start: "0 22 * * 6", duration: 4h, impacts: [none]}`:           "impacts",
	} {
		_, findings := DecodeSettings("rollout: {windows: ["+window+"]}", ref)
		switch {
		case field == "" && len(findings) > 0:
			t.Errorf("%s: %+v", window, findings)
		case field != "" && (len(findings) != 1 || !strings.Contains(findings[0].Field, "rollout.windows[0]."+field)):
			t.Errorf("%s: %+v, want one about %s", window, findings, field)
		}
	}
}
