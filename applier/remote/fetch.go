package remote

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"wmco/applier/protocol"
)

// Fetch is how hosts get executables from a registry in place of this process.
type Fetch struct {
	// Order returns what `wmco-node fetch` reads on stdin, with credentials; nil if none of the contents can be fetched.
	Order func(missing []protocol.Missing) ([]byte, error)
	// Begin is called before a host fetches: an error keeps it from that, and from everything else. End is called after it.
	Begin func(context.Context) (end func(), err error)
	// Failed is told why a host still lacks executables. An error forbids to send them.
	Failed func(why string) error
}

// fetchSilence is how long a host that fetches may say nothing: a registry may take its time, and there may be several.
const fetchSilence = 10 * time.Minute

// fetchMissing has the host fetch the executables among the contents that it lacks, and returns what it lacks then.
func (a *Agent) fetchMissing(ctx context.Context, r Request, missing []protocol.Missing) ([]protocol.Missing, error) {
	if r.Fetch == nil || !lacksExecutables(r, missing) {
		return missing, nil
	}
	why, err := a.fetchExecutables(ctx, r, missing)
	if err != nil {
		return nil, err
	}
	seen, err := a.compareHost(ctx, r, wordObserve)
	if err != nil {
		return nil, err
	}
	executables := r.Manifest.PayloadDigests()
	others := slices.DeleteFunc(slices.Clone(missing), func(m protocol.Missing) bool { return executables[m.Digest] })
	left := slices.Concat(others, seen.Missing)
	switch lacks := lacksExecutables(r, seen.Missing); {
	case !lacks && why == "":
		return left, nil
	case !lacks: // they are there and damaged, which apply alone finds
		left = missing
	}
	return left, r.Fetch.Failed(cmp.Or(why, "the image of the operator has not all of them"))
}

func lacksExecutables(r Request, missing []protocol.Missing) bool {
	executables := r.Manifest.PayloadDigests()
	return slices.ContainsFunc(missing, func(m protocol.Missing) bool { return executables[m.Digest] })
}

// fetchExecutables returns why the host could not fetch all of them, empty where it could.
func (a *Agent) fetchExecutables(ctx context.Context, r Request, missing []protocol.Missing) (why string, err error) {
	order, err := r.Fetch.Order(missing)
	if err != nil || order == nil {
		return "the operator's image has none of them, or is not known", err
	}
	end, err := r.Fetch.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	send := func(_ context.Context, w io.Writer) error {
		_, err := w.Write(order)
		return err
	}
	NoteStep(ctx, Step{Text: "fetching executables"})
	result, err := a.lastEvent(ctx, ask{words: []string{wordFetch}, changes: true, stdin: send, limit: a.client.limits.Apply, waits: fetchSilence},
		func(e protocol.Event) {
			if e.Event == protocol.EventFetching {
				NoteStep(ctx, Step{Text: "fetching executables: " + describeBytes(e.Bytes, e.AllBytes)})
			}
		})
	return result.Message, err
}
