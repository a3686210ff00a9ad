package kube

import "log/slog"

type link struct{}

func newLink(log *slog.Logger, host string) *link { return &link{} }

func (l *link) state() State { return State{} }
