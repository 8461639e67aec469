package render

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

var settingsRef = bundle.Ref{Kind: "ConfigMap", Name: SettingsConfigMap}

func TestSettingsOverrideTheDefaults(t *testing.T) {
	s, findings := DecodeSettings("logs:\n  files: 3\nrollout:\n  maxUnavailable: 20%\n", settingsRef)
	want := DefaultSettings()
	want.Logs.Files = 3
	want.Rollout.MaxUnavailable.Type, want.Rollout.MaxUnavailable.StrVal, want.Rollout.MaxUnavailable.IntVal = 1, "20%", 1
	if len(findings) > 0 {
		t.Errorf("findings %+v", findings)
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "  \n", "# nothing set\n"} {
		s, findings := DecodeSettings(text, settingsRef)
		if diff := cmp.Diff(DefaultSettings(), s); diff != "" || len(findings) > 0 {
			t.Errorf("%q: %s %+v", text, diff, findings)
		}
	}
}

func TestLogValuesThatUsersWrite(t *testing.T) {
	tests := []struct {
		size, age string
		bytes     int64
		hold      time.Duration
		bad       bool
	}{
		{size: "100Mi", age: "30d", bytes: 100 << 20, hold: 720 * time.Hour},
		{size: "100M", age: "168h", bytes: 100e6, hold: 168 * time.Hour},
		{size: " 5Mi ", age: " 7d ", bytes: 5 << 20, hold: 168 * time.Hour},
		{size: "0", age: "0"},
		{size: "1e7", age: "1h30m", bytes: 1e7, hold: 90 * time.Minute},
		{size: "100MB", age: "30d", bad: true},
		{size: "-5M", age: "30d", bad: true},
		{size: "1e3", age: "30d", bad: true},
		{size: "1.5", age: "30d", bad: true},
		{size: "", age: "30d", bad: true},
		{size: "100Mi", age: "", bad: true},
		{size: "100Mi", age: "7 days", bad: true},
		{size: "100Mi", age: "-1h", bad: true},
		{size: "100Mi", age: "1e3", bad: true},
		{size: "100Mi", age: "500ms", bad: true},
	}
	for _, test := range tests {
		l := DefaultSettings().Logs
		l.Size, l.Age = test.size, test.age
		if findings := l.check(); (len(findings) > 0) != test.bad {
			t.Errorf("size %q, age %q: findings %+v", test.size, test.age, findings)
		}
		if test.bad {
			continue
		}
		size, _ := l.sizeBytes()
		age, _ := l.age()
		if size != test.bytes || age != test.hold {
			t.Errorf("size %q, age %q: %d, %s", test.size, test.age, size, age)
		}
	}
}

func TestTheOperatorsEnvironmentOverridesSettings(t *testing.T) {
	s, findings := DefaultSettings().OperatorEnvironment(map[string]string{EnvLogSize: "50M", EnvLogAge: "24h", EnvArgs: "--other --debugLogging"}, bundle.Ref{})
	want := DefaultSettings()
	want.Logs.Size, want.Logs.Age, want.Debug = "50M", "24h", true
	if diff := cmp.Diff(want, s); diff != "" || len(findings) > 0 {
		t.Errorf("(-want +got):\n%s %+v", diff, findings)
	}
}

func FuzzDecodeSettings(f *testing.F) {
	f.Add("rollout:\n  maxUnavailable: 1\nkubelet:\n  maxPods: 3\n")
	f.Add("logs: {size: 1, age: 2}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, findings := DecodeSettings(text, settingsRef)
		if findings.Refused() {
			return
		}
		c := testCluster(bundle.PlatformNone)
		c.Settings = s
		if _, _, err := Render(Inputs{Cluster: c, Node: testNode()}, Options{}); err != nil {
			t.Errorf("accepted settings do not render: %v", err)
		}
	})
}

func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := json.Unmarshal(data, &defaults); err != nil {
		t.Fatal(err)
	}
	defaults["kubelet"] = ""
	for field, value := range flatten("", defaults) {
		row := fmt.Sprintf("| `%s` | `%v` |", field, value)
		if value == "" {
			row = fmt.Sprintf("| `%s` | |", field)
		}
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/operations.md lacks the row %s", row)
		}
	}
}

func flatten(prefix string, fields map[string]any) map[string]any {
	flat := map[string]any{}
	for name, value := range fields {
		if below, ok := value.(map[string]any); ok {
			for name, value := range flatten(prefix+name+".", below) {
				flat[name] = value
			}
			continue
		}
		flat[prefix+name] = value
	}
	return flat
}
