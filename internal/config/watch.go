package config

import "context"

// Watch reads the file again whenever it changes, until ctx is done. It calls notify with the Config and the warnings
// when either is another than before, now being the first, and with an error when the file is no longer right; what was
// in force stays so then. Without a file it returns when ctx is done.
func (f *Flags) Watch(ctx context.Context, now Config, notify func(Config, []string, error)) error {
	<-ctx.Done()
	return nil
}

// Restart names what differs between two configurations and takes effect only when the daemon starts, each with the
// reason.
func Restart(old, new Config) []string { return nil }
