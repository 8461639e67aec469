package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/preflight"
)

// lyingHost is a Transport to one host that has the agent. What runs there prints a text, or nothing until it is ended.
type lyingHost struct {
	fakeHost
	prints io.Reader
	silent bool
	// question is what the host was sent.
	question strings.Builder
}

func (h *lyingHost) Run(ctx context.Context, _ Target, c Command) error {
	if c.Stdin != nil {
		if err := c.Stdin(ctx, &h.question); err != nil {
			return err
		}
	}
	if h.silent {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return c.Stdout(h.prints)
}

func (h *lyingHost) Transfer(ctx context.Context, _ Target, do func(Files) error) error {
	if h.silent {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return do(h.files)
}

// endless is a text without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func answerWith(t *testing.T, change func(*preflight.Answer)) string {
	t.Helper()
	a := preflight.Answer{Schema: preflight.Schema}
	change(&a)
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAPreflightOfAHostThatLies costs a limited time and memory, and neither an error nor a finding repeats the host's text at length.
func TestAPreflightOfAHostThatLies(t *testing.T) {
	const password = "Basic c2VjcmV0"
	long := strings.Repeat("x", maxAnswer-4096)
	question := preflight.Question{Schema: preflight.Schema, Places: []preflight.Place{{Manifest: "https://mirror.example.com/v2/p/manifests/1", Authorization: password}}}
	without := &endless{}
	for name, tt := range map[string]struct {
		host lyingHost
		// refused is a part of the error, empty for an answer.
		refused string
	}{
		"nothing, and no end":    {lyingHost{silent: true}, "took longer than"},
		"nothing":                {lyingHost{prints: strings.NewReader("")}, `begins with ""`},
		"8 MiB of text":          {lyingHost{prints: strings.NewReader(strings.Repeat("x", maxAnswer))}, `begins with "xxx`},
		"text without an end":    {lyingHost{prints: without}, errTooMuch.Error()},
		"JSON of something else": {lyingHost{prints: strings.NewReader(`["a"]`)}, "preflight"},
		"another version":        {lyingHost{prints: strings.NewReader(`{"schema":2}`)}, "made by another version"},
		"a million folders":      {lyingHost{prints: strings.NewReader(`{"schema":1,"machine":{"folders":[{}` + strings.Repeat(",{}", 1_000_000) + `]}}`)}, errTooMuch.Error()},
		"a build of 8 MiB":       {lyingHost{prints: strings.NewReader(answerWith(t, func(a *preflight.Answer) { a.Facts.OSBuild = long }))}, ""},
		"a name of 8 MiB": {lyingHost{prints: strings.NewReader(answerWith(t, func(a *preflight.Answer) {
			a.Facts.HostName, a.Names.Full = long[:maxAnswer/2-4096], long[:maxAnswer/2-4096]
		}))}, ""},
		"ten thousand dockers": {lyingHost{prints: strings.NewReader(answerWith(t, func(a *preflight.Answer) {
			a.Machine.Services = slices.Repeat([]preflight.Service{{Name: "docker"}}, 10_000)
		}))}, ""},
		"ten thousand folders": {lyingHost{prints: strings.NewReader(answerWith(t, func(a *preflight.Answer) {
			for i := range 10_000 {
				a.Machine.Folders = append(a.Machine.Folders, preflight.Folder{Path: fmt.Sprint("folder ", i)})
			}
		}))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.host.files = having(programPath, agentText)
			limits := DefaultLimits()
			limits.Question, limits.Upload = 200*time.Millisecond, 200*time.Millisecond
			if !tt.host.silent {
				limits.Question, limits.Upload = time.Minute, time.Minute
			}
			begin := time.Now()
			answer, err := NewClient(&tt.host, theAgent(), limits).AgentFor(Target{User: DefaultUser, Address: "h:22"}).Preflight(t.Context(), question)
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if text := textOf(err); (err == nil) != (tt.refused == "") || !strings.Contains(text, tt.refused) || len(text) > 2000 || strings.Contains(text, password) {
				t.Errorf("got %.500q, want %q", text, tt.refused)
			}
			if err != nil {
				return
			}
			if !strings.Contains(tt.host.question.String(), password) {
				t.Error("the host got no credentials")
			}
			findings := preflight.Findings(question, answer)
			if len(findings) == 0 || len(findings) > 30 {
				t.Errorf("%d findings", len(findings))
			}
			for _, f := range findings {
				if len(f.Message) > 1100 {
					t.Errorf("%s has %d bytes", f.Reason, len(f.Message))
				}
			}
		})
	}
	if without.read > 2*maxAnswer {
		t.Errorf("%d bytes were read of a text without an end", without.read)
	}
}
