package kube

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// routeLibraryLog sends what client-go says to log. It says one thing in many lines, once for each kind and each try,
// while a Client says it once itself. So its errors become warnings, its information is for debugging, and what it
// calls verbose is below that.
func routeLibraryLog(log *slog.Logger) {
	klog.SetSlogLogger(slog.New(&softer{log.Handler()}))
}

// withLibraryLog does the same for what client-go does with this context, whoever else routes its log.
func withLibraryLog(ctx context.Context, log *slog.Logger) context.Context {
	return klog.NewContext(ctx, logr.FromSlogHandler(&softer{log.Handler()}))
}

// softerBy is the distance from one level to the next lower one.
const softerBy = slog.LevelWarn - slog.LevelError

// softer lowers each record by one level.
type softer struct{ next slog.Handler }

// Enabled reports whether a record of this level will be written.
func (s *softer) Enabled(ctx context.Context, level slog.Level) bool {
	return s.next.Enabled(ctx, level+softerBy)
}

// Handle writes a record.
func (s *softer) Handle(ctx context.Context, r slog.Record) error {
	r.Level += softerBy
	return s.next.Handle(ctx, r)
}

// WithAttrs is a handler that adds attributes.
func (s *softer) WithAttrs(attrs []slog.Attr) slog.Handler { return &softer{s.next.WithAttrs(attrs)} }

// WithGroup is a handler that puts attributes into a group.
func (s *softer) WithGroup(name string) slog.Handler { return &softer{s.next.WithGroup(name)} }
