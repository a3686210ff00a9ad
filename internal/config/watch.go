package config

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"sluice/internal/filewatch"
)

// Watch reads the file again whenever it changes, until ctx is done. It calls notify with the Config and the warnings
// when either is another than before, now being the first, and with an error when the file is no longer right; what was
// in force stays so then. Without a file, or if the one that was loaded is a pipe, it returns when ctx is done.
//
// The Config is as Load returns it: who chose a mode with [Config.For] chooses again.
func (f *Flags) Watch(ctx context.Context, now Config, notify func(Config, []string, error)) error {
	if f.File == "" || f.once {
		<-ctx.Done()
		return nil
	}
	last := reading{config: now}
	first := true
	return filewatch.File(ctx, f.File, func() {
		next := f.reading()
		if next.err != nil {
			next.config = last.config
		}
		if first && next.err == nil {
			last.warnings = next.warnings // who loaded now was given them
		}
		if !next.same(last) {
			notify(next.config, next.warnings, next.err)
		}
		first, last = false, next
	})
}

// reading is what the file said when it was read.
type reading struct {
	config   Config
	warnings []string
	err      error
}

func (f *Flags) reading() (r reading) {
	if r.err = readAgain(f.File); r.err == nil {
		r.config, r.warnings, r.err = f.Load()
	}
	return r
}

func (r reading) same(o reading) bool {
	if r.err != nil || o.err != nil {
		return r.err != nil && o.err != nil && r.err.Error() == o.err.Error()
	}
	return r.config.says(o.config) && slices.Equal(r.warnings, o.warnings)
}

// says reports whether two configurations say the same, whatever mode was chosen where they name none.
func (c Config) says(o Config) bool {
	return equality.Semantic.DeepEqual(c.values.as, o.values.as) && c.values.master == o.values.master
}

// Restart names what differs between two configurations and takes effect only when the daemon starts, each with the
// reason.
func Restart(old, new Config) (told []string) {
	if old.Client.Master != new.Client.Master {
		told = append(told, "--master: "+connection)
	}
	for _, s := range settings {
		if s.restart != "" && !equality.Semantic.DeepEqual(old.values.field(s.path).Interface(), new.values.field(s.path).Interface()) {
			told = append(told, s.path+": "+s.restart)
		}
	}
	return told
}
