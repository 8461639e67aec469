// Package otel stands in for github.com/containerd/log/otel in the containerd that checks rendered files in tests.
// containerd uses it to trace its log, which no test needs. With the stand-in, containerd can be built where that
// module cannot be downloaded.
package otel

import "github.com/containerd/log"

// HookOpt is an option of the hook.
type HookOpt func(*LogrusHook)

// LogrusHook is a hook of containerd's log that is called for no level.
type LogrusHook struct{}

// NewLogrusHook returns the hook.
func NewLogrusHook(...HookOpt) *LogrusHook { return &LogrusHook{} }

// WithTraceIDField changes nothing.
func WithTraceIDField(bool) HookOpt { return func(*LogrusHook) {} }

// Levels returns none.
func (*LogrusHook) Levels() []log.Level { return nil }

// Fire is never called.
func (*LogrusHook) Fire(*log.Entry) error { return nil }
