package render

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
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
		{size: "1.5Gi", age: "99999d", bytes: 3 << 29, hold: 99999 * 24 * time.Hour},
		{size: "0.5Gi", age: "0s", bytes: 1 << 29},
		{size: "2.5Mi", age: "1.5h", bytes: 5 << 19, hold: 90 * time.Minute},
		{size: "1Pi", age: "1s", bytes: 1 << 50, hold: time.Second},
		{size: "1.1Mi", age: "30d", bad: true},
		{size: "500Ki", age: "30d", bad: true},
		{size: "1.1Pi", age: "30d", bad: true},
		{size: "999999999E", age: "30d", bad: true},
		{size: "100Mi", age: "2562047h", bad: true},
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
		if findings := l.checkValues(); (len(findings) > 0) != test.bad {
			t.Errorf("size %q, age %q: findings %+v", test.size, test.age, findings)
		}
		if test.bad {
			continue
		}
		size, _ := l.sizeBytes()
		age, _ := l.maxAge()
		if size != test.bytes || age != test.hold {
			t.Errorf("size %q, age %q: %d, %s", test.size, test.age, size, age)
		}
	}
}

func TestHowManyNodesMayBeUnavailable(t *testing.T) {
	for value, ok := range map[string]bool{
		"1": true, "500": true, "1%": true, "100%": true, "0": false, "-1": false, "0%": false, "101%": false, "200%": false, `"3"`: false, "many": false,
	} {
		if _, findings := DecodeSettings("rollout: {maxUnavailable: "+value+"}", settingsRef); findings.Refused() == ok {
			t.Errorf("%s: %+v", value, findings)
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

// Of each variable: a value, and what the setting becomes. Every value is one that the existing operator accepts.
func TestTheOperatorsEnvironmentAcceptsWhatTheExistingOperatorAccepts(t *testing.T) {
	tests := []struct{ variable, value, want, message string }{
		{EnvLogSize, "1.5Gi", "1.5Gi", ""},
		{EnvLogSize, "0.5Gi", "0.5Gi", ""},
		{EnvLogSize, "2.5Mi", "2.5Mi", ""},
		{EnvLogSize, "0", "0", ""},
		{EnvLogSize, " 100M ", "100M", ""},
		{EnvLogSize, "1Pi", "1Pi", ""},
		{EnvLogSize, "500Ki", "1Mi", `"500Ki" becomes 1Mi: a log is rotated at a whole number of bytes from 1Mi to 1Pi`},
		{EnvLogSize, "1m", "1Mi", `"1m" becomes 1Mi: a log is rotated at a whole number of bytes from 1Mi to 1Pi`},
		{EnvLogSize, "1.1Mi", "1153434", `"1.1Mi" becomes 1153434: a log is rotated at a whole number of bytes from 1Mi to 1Pi`},
		{EnvLogSize, "999999999E", "1Pi", `"999999999E" becomes 1Pi: a log is rotated at a whole number of bytes from 1Mi to 1Pi`},
		{EnvLogAge, "168h", "168h", ""},
		{EnvLogAge, "0", "0", ""},
		{EnvLogAge, "1.5h", "1.5h", ""},
		{EnvLogAge, "7d", "7d", ""},
		{EnvLogAge, "500ms", "1s", `"500ms" becomes 1s: a rotated log is kept for whole seconds, up to 99999d`},
		{EnvLogAge, "1h0.001s", "1h0m1s", `"1h0.001s" becomes 1h0m1s: a rotated log is kept for whole seconds, up to 99999d`},
		{EnvLogAge, "2562047h47m16.854775807s", "99999d", `"2562047h47m16.854775807s" becomes 99999d: a rotated log is kept for whole seconds, up to 99999d`},
		{EnvLogFlush, "10s", "10s", ""},
		{EnvLogFlush, "0", "0", ""},
		{EnvLogFlush, "250ms", "250ms", ""},
		{EnvLogFlush, "24h", "1h", `"24h" becomes 1h: logs are written out at least every 1h`},
	}
	for _, test := range tests {
		s, findings := DefaultSettings().OperatorEnvironment(map[string]string{test.variable: test.value}, settingsRef)
		got := map[string]string{EnvLogSize: s.Logs.Size, EnvLogAge: s.Logs.Age, EnvLogFlush: s.Logs.FlushInterval}[test.variable]
		message := ""
		for _, f := range findings {
			message += f.Message
			if f.Severity != bundle.SeverityInfo || f.Field != "env."+test.variable {
				t.Errorf("%s=%s: %+v", test.variable, test.value, f)
			}
		}
		if got != test.want || message != test.message {
			t.Errorf("%s=%s: %s, %q", test.variable, test.value, got, message)
		}
		if impossible := s.checkValues(settingsRef); len(impossible) > 0 {
			t.Errorf("%s=%s: %+v", test.variable, test.value, impossible)
		}
	}
}

func TestTheOperatorsEnvironmentRefusesWhatTheExistingOperatorRefuses(t *testing.T) {
	for variable, values := range map[string][]string{
		EnvLogSize: {"-5M", "100MB", "x", "1,5Gi"}, EnvLogAge: {"-1h", "1e3", "7 days"}, EnvLogFlush: {"-1s", "5 s", "never"},
	} {
		for _, value := range values {
			s, findings := DefaultSettings().OperatorEnvironment(map[string]string{variable: value}, settingsRef)
			if !findings.Refused() {
				t.Errorf("%s=%s is accepted", variable, value)
			}
			if diff := cmp.Diff(DefaultSettings(), s); diff != "" {
				t.Errorf("%s=%s (-want +got):\n%s", variable, value, diff)
			}
		}
	}
}

// TestSettingsThatAreTooLarge: as they are written, or with the aliases of YAML replaced. Aliases that fit may be used.
func TestSettingsThatAreTooLarge(t *testing.T) {
	for text, want := range map[string]string{
		"logs: {files: 3} #" + strings.Repeat("x", maxSettings):                              "has 65554 bytes, at most 65536 are allowed",
		"logs: {files: 3}\n---\nlogs: {files: 4}":                                            "has a second document",
		"a: &a " + strings.Repeat("x", 1<<10) + "\nb: [" + strings.Repeat("*a,", 100) + "1]": "has aliases that expand to more than 65536 bytes",
		"kubelet: {kubeReserved: &r {memory: 1Gi}, systemReserved: *r}":                      "",
	} {
		_, findings := DecodeSettings(text, settingsRef)
		if want == "" && findings.Refused() || want != "" && (len(findings) != 1 || !strings.Contains(findings[0].Message, want)) {
			t.Errorf("%.40s: %v, want %q", text, findings, want)
		}
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
	text, err := os.ReadFile("../docs/settings.md")
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
			t.Errorf("docs/settings.md lacks the row %s", row)
		}
	}
}

// TestSettingsAreExplained: each setting has one meaning, and docs/settings.md has the same.
func TestSettingsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := SettingDocs()
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, d := range docs {
		explained[d.Name] = true
		if !strings.Contains(string(text), "| `"+d.Name+"` | ") || !strings.Contains(string(text), "| "+d.Meaning+" |\n") {
			t.Errorf("docs/settings.md differs about %s from %q", d.Name, d.Meaning)
		}
	}
	for _, name := range SettingNames() {
		isGroup := slices.ContainsFunc(SettingNames(), func(n string) bool { return strings.HasPrefix(n, name+".") })
		if !isGroup && !explained[name] {
			t.Errorf("%s is not explained", name)
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

// TestAPauseImageThatIsNoneIsNotShown, as it may have a user and password in it: neither where it is refused nor where images of nodes are listed.
func TestAPauseImageThatIsNoneIsNotShown(t *testing.T) {
	c := testCluster(bundle.PlatformNone)
	c.Settings.PauseImage = "robot:sesame@registry.example.com/pause:1?token=sesame"
	c.Mirrors.Sets = []mirrors.Set{{Kind: mirrors.DigestSet, Source: "a.example.com", Mirrors: []string{"b.example.com"}}}
	_, findings, err := Render(Inputs{Cluster: c, Node: testNode()}, Options{})
	if err != nil || !findings.Refused() {
		t.Fatalf("it is not refused: %v", err)
	}
	if text := fmt.Sprintf("%+v %+v", findings, c.NodeImages()); strings.Contains(text, "sesame") {
		t.Error(text)
	}
	_, findings = DecodeSettings("pauseImage: "+c.Settings.PauseImage, settingsRef)
	if text := fmt.Sprintf("%+v", findings); !findings.Refused() || strings.Contains(text, "sesame") {
		t.Error(text)
	}
}
