package app

import (
	"log/slog"

	"sluice/internal/config"
)

// Log is what the daemon tells, as much as the configuration asks for.
type Log struct {
	*slog.Logger
	level *slog.LevelVar
}

// debugFrom is the verbosity from which a Log tells of what is not news: writes that changed nothing, requests. kube-proxy's
// users know 2 as the one that says what it does, and 0 as the one that says little.
const debugFrom = 2

// NewLog makes a Log. handler has the lines that level lets through.
func NewLog(verbosity int, handler func(level slog.Leveler) slog.Handler) Log {
	l := Log{level: &slog.LevelVar{}}
	l.Logger = slog.New(handler(l.level))
	l.follow(config.Log{Verbosity: verbosity})
	return l
}

// follow changes how much is told.
func (l Log) follow(c config.Log) {
	level := slog.LevelInfo
	if c.Verbosity >= debugFrom {
		level = slog.LevelDebug
	}
	l.level.Set(level)
}
