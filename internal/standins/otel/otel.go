// Package otel stands in for github.com/containerd/log/otel where containerd judges our files in tests. containerd hands
// its log to it for tracing; nothing is traced here. With it, the judge builds where that module cannot be downloaded.
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

// Levels are none.
func (*LogrusHook) Levels() []log.Level { return nil }

// Fire is never called.
func (*LogrusHook) Fire(*log.Entry) error { return nil }
