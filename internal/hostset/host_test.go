package hostset

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake is a kernel of values, which refuses to write some.
type fake struct {
	values  map[Setting]int
	refuses map[Setting]error
	wrote   []string
}

func (f *fake) kernel() kernel {
	return kernel{
		cpus: func() (int, error) { return 2, nil },
		read: func(s Setting) (int, error) {
			value, ok := f.values[s]
			if !ok {
				return 0, fmt.Errorf("read kernel setting %s: %w", s, fs.ErrNotExist)
			}
			return value, nil
		},
		write: func(s Setting, value int) error {
			if err := f.refuses[s]; err != nil {
				return fmt.Errorf("set kernel setting %s: %w", s, err)
			}
			f.values[s] = value
			f.wrote = append(f.wrote, fmt.Sprintf("%s=%d", s, value))
			return nil
		},
	}
}

// hostOn is a Host on a fake kernel, and what it logs, without times.
func hostOn(f *fake) (*Host, func() string) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	h := New(log)
	h.kernel = f.kernel()
	return h, func() string {
		defer out.Reset()
		return out.String()
	}
}

// Connection tracking is loaded with the first rule: what waited for it is then set, and all is told once.
func TestApplyAgainOnceConnectionTrackingIsLoaded(t *testing.T) {
	f := &fake{values: map[Setting]int{OOMScoreAdj: 0}}
	h, logged := hostOn(f)
	problems := h.Apply(defaults())
	if len(problems) != 4 {
		t.Errorf("got %v", problems)
	}
	for _, p := range problems {
		if !p.Waits() {
			t.Errorf("does not wait: %v", p)
		}
	}
	if text := logged(); strings.Count(text, "has to wait") != 4 || strings.Contains(text, "WARN") {
		t.Errorf("first: %s", text)
	}
	h.Apply(defaults())
	if text := logged(); text != "" {
		t.Errorf("told again: %s", text)
	}

	for s, r := range machine(2, nil).Values {
		if s != OOMScoreAdj {
			f.values[s] = r.Value
		}
	}
	if problems := h.Apply(defaults()); len(problems) != 0 {
		t.Errorf("got %v", problems)
	}
	if text := logged(); strings.Count(text, "problem is over") != 4 {
		t.Errorf("when loaded: %s", text)
	}
	want := []string{
		"oom_score_adj=-999", "net.netfilter.nf_conntrack_max=131072",
		"net.netfilter.nf_conntrack_tcp_timeout_established=86400", "net.netfilter.nf_conntrack_tcp_timeout_close_wait=3600",
	}
	if diff := cmp.Diff(want, f.wrote); diff != "" {
		t.Error(diff)
	}
}

// One refusal holds up no other setting, is told once, and is over when another set it.
func TestApplyGoesOnAfterARefusal(t *testing.T) {
	f := &fake{values: map[Setting]int{}, refuses: map[Setting]error{MaxConnections: syscall.EACCES}}
	for s, r := range machine(2, nil).Values {
		f.values[s] = r.Value
	}
	h, logged := hostOn(f)
	for range 2 {
		problems := h.Apply(defaults())
		if len(problems) != 1 || problems[0].Setting != MaxConnections || !errors.Is(problems[0].Err, fs.ErrPermission) {
			t.Errorf("got %v", problems)
		}
	}
	if text := logged(); strings.Count(text, "WARN") != 1 || strings.Count(text, "set up the machine") != 3 || !strings.Contains(text, "conntrack.maxPerCore: 0") {
		t.Errorf("got %s", text)
	}
	if len(f.wrote) != 3 {
		t.Errorf("wrote %v", f.wrote)
	}
	f.values[MaxConnections] = 131072
	if problems := h.Apply(defaults()); len(problems) != 0 {
		t.Errorf("got %v", problems)
	}
	if text := logged(); !strings.Contains(text, "problem is over") {
		t.Errorf("got %s", text)
	}
}

func TestApplyOtherSettings(t *testing.T) {
	f := &fake{values: map[Setting]int{}}
	for s, r := range machine(2, nil).Values {
		f.values[s] = r.Value
	}
	h, logged := hostOn(f)
	h.Apply(defaults())
	f.wrote = nil
	_ = logged()

	s := defaults()
	s.Conntrack.Min, s.Conntrack.TCPCloseWait = 1000, time.Minute
	h.Apply(s)
	if diff := cmp.Diff([]string{"net.netfilter.nf_conntrack_tcp_timeout_close_wait=60"}, f.wrote); diff != "" {
		t.Error(diff)
	}
	if text := logged(); strings.Count(text, "stays at 131072: it is only ever raised, and 65536 is asked for now") != 1 {
		t.Errorf("got %s", text)
	}
	h.Apply(s)
	if text := logged(); text != "" {
		t.Errorf("told again: %s", text)
	}
}

// Where processors cannot be counted, those of this process stand for them.
func TestFactsWithoutACount(t *testing.T) {
	k := (&fake{values: map[Setting]int{}}).kernel()
	k.cpus = func() (int, error) { return 0, fs.ErrNotExist }
	if n := k.facts().CPUs; n < 1 {
		t.Errorf("got %d", n)
	}
}
