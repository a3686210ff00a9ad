package ipvs

import (
	"io/fs"
	"maps"
	"testing"
)

// noSettings is the kernel of an ordinary user's namespace, before Linux 6.10.
type noSettings struct{ settings }

func (noSettings) Get(string) (string, error) { return "", fs.ErrNotExist }

// A kernel that has virtual servers and lacks their settings is told of before anything is written.
func TestProbeNeedsTheSetting(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	if err := w.backend.Probe(t.Context()); err != nil {
		t.Errorf("with the setting: %v", err)
	}
	before := maps.Clone(w.links)
	w.backend.deps.Sysctl = noSettings{settings{w.kernel, nil}}
	want := "this kernel cannot do mode ipvs: connection tracking of virtual servers cannot be switched on: file does not exist"
	if err := w.backend.Probe(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(w.servers) != 0 || !maps.EqualFunc(before, w.links, maps.Equal) {
		t.Errorf("left are %v and %v", w.servers, w.links)
	}
}
