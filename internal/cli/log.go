package cli

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"sluice/internal/app"
	"sluice/internal/config"
)

// newLog writes for people on a terminal, with colours unless NO_COLOR is set, and elsewhere lines of key=value or of JSON.
func newLog(w io.Writer, c config.Log) app.Log {
	return app.NewLog(c.Verbosity, func(level slog.Leveler) slog.Handler {
		if c.Format == config.FormatJSON {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
		}
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: os.Getenv("NO_COLOR") != ""})
		}
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
	})
}
