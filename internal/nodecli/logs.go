package nodecli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"wmco/bundle"
)

// levels are the log files that must-gather reads, with the lowest level that each has. Their names are those that klog
// gives the files of the existing operator's daemon.
var levels = []struct {
	name  string
	level slog.Level
}{
	{"INFO", slog.LevelInfo},
	{"WARNING", slog.LevelWarn},
	{"ERROR", slog.LevelError},
}

// openLogs opens the logs in a folder; stderr where none is named.
func (p Program) openLogs(dir string) (*slog.Logger, func(), error) {
	if dir == "" {
		return slog.New(slog.NewTextHandler(p.Stderr, nil)), func() {}, nil
	}
	var all handlers
	var files []io.Closer
	for _, l := range levels {
		f, err := openLog(filepath.Join(dir, bundle.AgentService+".exe."+l.name))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
		all = append(all, slog.NewTextHandler(f, &slog.HandlerOptions{Level: l.level}))
	}
	return slog.New(all), func() {
		for _, f := range files {
			_ = f.Close()
		}
	}, nil
}

// openLog appends, so that the file can be truncated while it is open (applier.Writer.CopyTruncate).
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// handlers passes records to each handler.
type handlers []slog.Handler

// Enabled implements slog.Handler.
func (h handlers) Enabled(ctx context.Context, l slog.Level) bool {
	for _, x := range h {
		if x.Enabled(ctx, l) {
			return true
		}
	}
	return false
}

// Handle implements slog.Handler.
func (h handlers) Handle(ctx context.Context, r slog.Record) error {
	var errs []error
	for _, x := range h {
		if x.Enabled(ctx, r.Level) {
			errs = append(errs, x.Handle(ctx, r.Clone()))
		}
	}
	return errors.Join(errs...)
}

// WithAttrs implements slog.Handler.
func (h handlers) WithAttrs(attrs []slog.Attr) slog.Handler {
	var out handlers
	for _, x := range h {
		out = append(out, x.WithAttrs(attrs))
	}
	return out
}

// WithGroup implements slog.Handler.
func (h handlers) WithGroup(name string) slog.Handler {
	var out handlers
	for _, x := range h {
		out = append(out, x.WithGroup(name))
	}
	return out
}
