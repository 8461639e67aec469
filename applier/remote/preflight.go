package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"wmco/preflight"
)

// Preflight asks the host what it has and what it reaches. Nothing on the host changes. The question has credentials,
// which are sent on stdin.
func (a *Agent) Preflight(ctx context.Context, q preflight.Question) (preflight.Answer, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return preflight.Answer{}, errors.New("encoding the question of preflight") // the error could have a part of it
	}
	send := func(_ context.Context, w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
	var out answer
	failed := a.runChecked(ctx, ask{words: []string{wordPreflight, "--stdin", "-o", "json"}, works: true, stdin: send,
		stdout: &out, limit: a.client.limits.Question})
	if len(out.data) == 0 && failed != nil {
		return preflight.Answer{}, failed
	}
	answer, err := preflight.DecodeAnswer(out.data)
	if err != nil {
		return preflight.Answer{}, a.badAnswer(wordPreflight, out.data, errors.Join(err, failed))
	}
	return answer, unlessStatus(failed)
}
