package applier

import (
	"context"
	"errors"
	"io"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// maxLogRead is how many bytes of the end of a log are read, and maxLogSkip the size of a log of which the end is read
// where the host can only read it from its beginning.
const (
	maxLogRead = 16 << 10
	maxLogSkip = 256 << 20
)

// tailLog returns the end of the log of the service because of which a run is rolled back; none if there is no such
// service, or no log that can be read. It is read before the service is restored, which writes to the same log.
func (b rollback) tailLog(ctx context.Context, why error) bundle.LogTail {
	name := b.blamedService(why)
	path := logOfService(b.situation.records.Journal.Bundle.ManifestBundle(), name)
	if path == "" {
		return bundle.LogTail{}
	}
	text, err := readEnd(ctx, b.situation.host, path)
	if err != nil {
		b.progress.addNote("reading the log of service " + name + ": " + err.Error())
	}
	return bundle.NewLogTail(name, text)
}

// blamedService returns the service that an error is about; empty if it is about none. A guard rolls back because of
// the node agent.
func (b rollback) blamedService(why error) string {
	var blames interface{ BlamedService() string }
	switch {
	case errors.As(why, &blames):
		return blames.BlamedService()
	case b.guards:
		return bundle.AgentService
	}
	return ""
}

// logFlag is how kube-log-runner is told where to write.
const logFlag = "-log-file="

// logOfService returns the path of the log of a service in a bundle; empty where it has none. Engine.Permits has seen
// that it is one.
func logOfService(b bundle.Bundle, name string) string {
	for _, s := range b.Services() {
		if plan.ServiceName(s.Name) != plan.ServiceName(name) {
			continue
		}
		if len(s.Logs) > 0 {
			return s.Logs[0].Path
		}
		for _, arg := range s.Argv { // its size is not limited
			if path, ok := strings.CutPrefix(arg, logFlag); ok {
				return path
			}
		}
	}
	return ""
}

// readEnd returns the last lines of a file. One that does not exist is empty; links are not followed.
func readEnd(ctx context.Context, host Host, path string) (string, error) {
	infos, err := host.Stat(ctx, []string{path})
	if err != nil || infos[0].Kind != plan.FileRegular || infos[0].Size == 0 {
		return "", err
	}
	f, err := host.Open(ctx, path)
	if err != nil {
		return "", err
	}
	skipped, err := skipToEnd(f, infos[0].Size)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxLogRead))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if !skipped {
		return string(text), nil
	}
	_, rest, _ := strings.Cut(string(text), "\n") // half a line may be half a secret, without what it is called
	return rest, nil
}

// skipToEnd skips all but the last bytes of a file of this size. It reports whether there was anything.
func skipToEnd(f io.Reader, size int64) (bool, error) {
	before := size - maxLogRead
	if before <= 0 {
		return false, nil
	}
	if s, ok := f.(io.Seeker); ok {
		_, err := s.Seek(before, io.SeekStart)
		return true, err
	}
	if before > maxLogSkip {
		return false, errors.New("it is too large")
	}
	_, err := io.CopyN(io.Discard, f, before)
	return true, err
}

// The reason of a rollback, as records have it: why, and the end of the log below it, so that a process that resumes
// the rollback has both. A program of an older version takes all of it for the reason.
const (
	reasonLog  = "\nthe log of "
	reasonEnds = " ends:\n"
)

func joinReason(why string, log bundle.LogTail) string {
	if log.IsZero() {
		return why
	}
	return why + reasonLog + log.Service + reasonEnds + strings.Join(log.Lines, "\n")
}

func splitReason(reason string) (string, bundle.LogTail) {
	why, rest, _ := strings.Cut(reason, reasonLog)
	service, lines, ok := strings.Cut(rest, reasonEnds)
	if !ok {
		return reason, bundle.LogTail{}
	}
	return why, bundle.LogTail{Service: service, Lines: strings.Split(lines, "\n")}.BoundedTail()
}
