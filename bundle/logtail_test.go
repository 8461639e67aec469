package bundle

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestTheEndOfALogHoldsNoSecret: in each line of a log the word hunter2 is a secret.
func TestTheEndOfALogHoldsNoSecret(t *testing.T) {
	for name, tt := range map[string]struct{ line, want string }{
		"a proxy with a password":                  {`proxyconnect tcp: dial http://admin:hunter2@proxy.example.com:3128: refused`, `proxyconnect tcp: dial http://****:****@proxy.example.com:3128: refused`},
		"a bearer token in a header":               {`request: Authorization: Bearer hunter2`, `request: Authorization: Bearer <masked>`},
		"a long bearer token in a sentence":        {`bearer hunter2hunter2hunter2 expired`, `<masked> expired`},
		"a password in JSON":                       {`{"user":"x","password":"hunter2 hunter2"}`, `{"user":"x","password":<masked>}`},
		"a password in quoted JSON":                {`err="body {\"password\":\"hunter2\"}"`, `err="body {\"password\":\<masked>}"`},
		"the auth of a pull secret":                {`{"auths":{"quay.io":{"auth":"aHVudGVyMg== hunter2"}}}`, `{"auths":{"quay.io":{"auth":<masked>}}}`},
		"an assignment":                            {`bootstrap-token=hunter2 x=y`, `bootstrap-token=<masked> x=y`},
		"a flag of a command":                      {`run kubelet.exe --token hunter2 --v=2`, `run kubelet.exe --token <masked> --v=2`},
		"a signed address":                         {`GET https://blob.example.com/x?sv=1&sig=hunter2&se=2`, `GET https://blob.example.com/x?sv=1&sig=<masked>&se=2`},
		"a secret with an escape in it":            {"pass\x1b[0mword=hunter2", `password=<masked>`},
		"a secret behind an escape without an end": {"\x1b]0;x\npassword=hunter2", `password=<masked>`},
		"a key without its first line":             {strings.Repeat("hunter2A", 8), `<masked>`},
		"a sentence with none":                     {`E0603 12:00:00.000000 1 run.go:74] "command failed" err="failed to get token: no such file"`, ""},
		"a digest and an image":                    {`pulling quay.io/x/y@sha256:0123456789012345678901234567890123456789012345678901234567890123`, ""},
		"a word that only sounds like a key":       {`keyboard: x`, ""},
	} {
		got := NewLogTail("kubelet", "first\n"+tt.line+"\n")
		want := LogTail{"kubelet", []string{"first", tt.want}}
		if tt.want == "" {
			want.Lines[1] = tt.line
		}
		if name == "a sentence with none" { // what follows "token:" is masked although it is none: better one word too many
			want.Lines[1] = `E0603 12:00:00.000000 1 run.go:74] "command failed" err="failed to get token: <masked> such file"`
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAPrivateKeyInALogIsMasked(t *testing.T) {
	text := "before\n-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nafter"
	if diff := cmp.Diff(LogTail{"kubelet", []string{"before", MaskedText, "after"}}, NewLogTail("kubelet", text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheEndOfALogIsShort(t *testing.T) {
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	if diff := cmp.Diff(LogTail{"kubelet", lines[40:]}, NewLogTail("kubelet", strings.Join(lines, "\r\n")+"\r\n\r\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	long := NewLogTail("kubelet", strings.Repeat(strings.Repeat("ü", 1000)+" end\n", 20))
	size := 0
	for _, l := range long.Lines {
		size += len(l)
	}
	if len(long.Lines) != 3 || size > maxTail || !strings.HasSuffix(long.Lines[0], "ü...") {
		t.Errorf("%d lines of %d bytes", len(long.Lines), size)
	}
	for name, l := range map[string]LogTail{"nothing": NewLogTail("kubelet", " \n\t\n"), "no service": NewLogTail("", "x"), "a path": NewLogTail(`..\x`, "x")} {
		if !l.IsZero() || l.Service != "" {
			t.Errorf("%s: %v", name, l)
		}
	}
}

// TestWhatAHostSendsOfALogIsText that no terminal acts on.
func TestWhatAHostSendsOfALogIsText(t *testing.T) {
	hostile := LogTail{"kubelet", []string{"\x1b]0;title\x07a\x1b[2J\x1b[31mred\x1b[0m", "b\u202ec\u2028d\x00\x08", "e\nfake: line", "\x9b31mf\xff", "\u009b31mg\u009d0;x\x07h"}}
	got := hostile.BoundedTail()
	if diff := cmp.Diff(LogTail{"kubelet", []string{"ared", "bc d", "e fake: line", "31mf", "gh"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, line := range got.Lines {
		if strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q", line)
		}
	}
}

func TestAMessageHasTheLinesThatFit(t *testing.T) {
	l := LogTail{"kubelet", []string{"first", "second", "third"}}
	for most, want := range map[int]string{
		100: "; the log of kubelet ends: first | second | third", 45: "; the log of kubelet ends: second | third", 32: "; the log of kubelet ends: third", 20: "",
	} {
		if got := l.DescribeTail(most); got != want {
			t.Errorf("%d bytes: %q, want %q", most, got, want)
		}
	}
}

func FuzzLogTail(f *testing.F) {
	f.Add("password=\x1b[0mx\n\xff")
	f.Add(strings.Repeat("a", 2000))
	f.Fuzz(func(t *testing.T, text string) {
		l := NewLogTail("kubelet", text)
		size := 0
		for _, line := range l.Lines {
			size += len(line)
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%q", line)
			}
		}
		if size > maxTail || len(l.Lines) > maxTailLines {
			t.Errorf("%d lines of %d bytes", len(l.Lines), size)
		}
		if diff := cmp.Diff(l, l.BoundedTail()); diff != "" {
			t.Errorf("it is another one when it is limited again:\n%s", diff)
		}
	})
}
