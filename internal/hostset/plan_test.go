package hostset

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machine is one with so many processors, whose other values are those of a new Linux.
func machine(cpus int, values map[Setting]int) Facts {
	f := Facts{CPUs: cpus, Values: map[Setting]Reading{
		MaxConnections: {Value: 65536}, Buckets: {Value: 65536},
		TCPEstablished: {Value: 432000}, TCPCloseWait: {Value: 60}, UDP: {Value: 30}, UDPStream: {Value: 120},
		BeLiberal: {}, OOMScoreAdj: {},
	}}
	for s, v := range values {
		f.Values[s] = Reading{Value: v}
	}
	return f
}

// defaults is what kube-proxy asks for when nobody says otherwise.
func defaults() Settings {
	return Settings{OOMScoreAdj: -999, SetOOM: true, Conntrack: Conntrack{
		MaxPerCore: 32768, Min: 131072, TCPEstablished: 24 * time.Hour, TCPCloseWait: time.Hour,
	}}
}

func TestPlan(t *testing.T) {
	limit := func(perCore, least int) Settings {
		return Settings{Conntrack: Conntrack{MaxPerCore: perCore, Min: least}}
	}
	for _, c := range []struct {
		name string
		s    Settings
		now  Facts
		want []Step
	}{
		{name: "nothing is asked for", now: machine(4, nil)},
		{
			name: "kube-proxy's defaults on a new machine", s: defaults(), now: machine(2, nil),
			want: []Step{
				{MaxConnections, 65536, 131072},
				{TCPEstablished, 432000, 86400},
				{TCPCloseWait, 60, 3600},
				{OOMScoreAdj, 0, -999},
			},
		},
		{
			name: "all is so already", s: defaults(),
			now: machine(2, map[Setting]int{MaxConnections: 131072, TCPEstablished: 86400, TCPCloseWait: 3600, OOMScoreAdj: -999}),
		},
		{name: "16 processors", s: limit(32768, 131072), now: machine(16, nil), want: []Step{{MaxConnections, 65536, 524288}, {Buckets, 65536, 131072}}},
		{name: "64 processors are capped", s: limit(32768, 131072), now: machine(64, nil), want: []Step{{MaxConnections, 65536, 1048576}, {Buckets, 65536, 262144}}},
		{name: "32 processors reach the cap", s: limit(32768, 131072), now: machine(32, nil), want: []Step{{MaxConnections, 65536, 1048576}, {Buckets, 65536, 262144}}},
		{name: "16 processors, min 2,000,000", s: limit(32768, 2_000_000), now: machine(16, nil), want: []Step{{MaxConnections, 65536, 2_000_000}, {Buckets, 65536, 500_000}}},
		{name: "64 processors, min 2,000,000 is above the cap", s: limit(32768, 2_000_000), now: machine(64, nil), want: []Step{{MaxConnections, 65536, 2_000_000}, {Buckets, 65536, 500_000}}},
		{name: "the largest numbers", s: limit(math.MaxInt32, math.MaxInt32), now: machine(8192, nil), want: []Step{{MaxConnections, 65536, math.MaxInt32}, {Buckets, 65536, math.MaxInt32 / 4}}},
		{name: "maxPerCore 0: min does not count", s: limit(0, 2_000_000), now: machine(64, nil)},
		{name: "a limit that is higher stays", s: limit(32768, 131072), now: machine(2, map[Setting]int{MaxConnections: 262144})},
		{name: "no limit stays", s: limit(32768, 131072), now: machine(2, map[Setting]int{MaxConnections: 0})},
		{
			name: "enough connections, too few buckets for what is asked", s: limit(32768, 131072),
			now:  machine(2, map[Setting]int{MaxConnections: 1 << 20, Buckets: 16384}),
			want: []Step{{Buckets, 16384, 32768}},
		},
		{
			name: "times go down as well as up", s: Settings{Conntrack: Conntrack{UDP: 10 * time.Second, UDPStream: 5 * time.Minute}},
			now: machine(1, nil), want: []Step{{UDP, 30, 10}, {UDPStream, 120, 300}},
		},
		{
			name: "parts of a second", s: Settings{Conntrack: Conntrack{UDP: 500 * time.Millisecond, UDPStream: 2900 * time.Millisecond}},
			now: machine(1, nil), want: []Step{{UDP, 30, 1}, {UDPStream, 120, 2}},
		},
		{name: "liberal", s: Settings{Conntrack: Conntrack{BeLiberal: true}}, now: machine(1, nil), want: []Step{{BeLiberal, 0, 1}}},
		{name: "not liberal leaves it", now: machine(1, map[Setting]int{BeLiberal: 1})},
		{name: "score 0 is a score", s: Settings{SetOOM: true}, now: machine(1, map[Setting]int{OOMScoreAdj: -997}), want: []Step{{OOMScoreAdj, -997, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps, problems := Plan(c.s, c.now)
			if diff := cmp.Diff(c.want, steps); diff != "" || len(problems) != 0 {
				t.Errorf("problems %v; steps, - want + got:\n%s", problems, diff)
			}
		})
	}
}

// What cannot be read is a problem if something is asked of it, and of no interest else.
func TestPlanOfWhatCannotBeRead(t *testing.T) {
	now := machine(2, nil)
	for _, s := range []Setting{MaxConnections, Buckets, UDP, BeLiberal} {
		now.Values[s] = Reading{Err: fs.ErrNotExist}
	}
	now.Values[TCPCloseWait] = Reading{Err: fs.ErrPermission}
	steps, problems := Plan(defaults(), now)
	if diff := cmp.Diff([]Step{{TCPEstablished, 432000, 86400}, {OOMScoreAdj, 0, -999}}, steps); diff != "" {
		t.Error(diff)
	}
	waits := map[Setting]bool{}
	for _, p := range problems {
		waits[p.Setting] = p.Waits()
	}
	if diff := cmp.Diff(map[Setting]bool{MaxConnections: true, Buckets: true, TCPCloseWait: false}, waits); diff != "" {
		t.Error(diff)
	}
}

func TestStays(t *testing.T) {
	with := func(edit func(*Settings)) Settings {
		s := defaults()
		edit(&s)
		return s
	}
	set := machine(16, map[Setting]int{MaxConnections: 524288, TCPEstablished: 86400, TCPCloseWait: 3600, BeLiberal: 1, OOMScoreAdj: -999})
	for _, c := range []struct {
		name      string
		before, s Settings
		want      []string
	}{
		{name: "the first settings", s: defaults()},
		{name: "the same", before: defaults(), s: defaults()},
		{name: "higher", before: defaults(), s: with(func(s *Settings) { s.Conntrack.Min = 2_000_000 })},
		{
			name: "lower", before: defaults(), s: with(func(s *Settings) { s.Conntrack.MaxPerCore = 1000 }),
			want: []string{"net.netfilter.nf_conntrack_max stays at 524288: it is only ever raised, and 131072 is asked for now"},
		},
		{
			name: "lower, but above what it is", before: with(func(s *Settings) { s.Conntrack.Min = 3_000_000 }),
			s: with(func(s *Settings) { s.Conntrack.Min = 2_000_000 }),
		},
		{name: "a shorter time is set", before: defaults(), s: with(func(s *Settings) { s.Conntrack.TCPCloseWait = time.Minute })},
		{
			name: "not asked for any more", before: with(func(s *Settings) { s.Conntrack.BeLiberal = true }), s: Settings{},
			want: []string{
				"net.netfilter.nf_conntrack_max stays at 524288: the configuration leaves it as it is now",
				"net.netfilter.nf_conntrack_tcp_timeout_established stays at 86400: the configuration leaves it as it is now",
				"net.netfilter.nf_conntrack_tcp_timeout_close_wait stays at 3600: the configuration leaves it as it is now",
				"net.netfilter.nf_conntrack_tcp_be_liberal stays at 1: the configuration leaves it as it is now",
				"oom_score_adj stays at -999: the configuration leaves it as it is now",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Stays(c.before, c.s, set)); diff != "" {
				t.Errorf("- want + got:\n%s", diff)
			}
		})
	}
}

// Every setting says what its problem means and how to be rid of it.
func TestProblemTexts(t *testing.T) {
	for _, c := range []struct {
		p    Problem
		want string
	}{
		{
			Problem{Setting: MaxConnections, Have: 65536, Want: 131072, Err: fs.ErrPermission},
			"new connections are dropped while 65536 are tracked, where 131072 are asked for; run Sluice privileged and in the host's network, or set it on the host (sysctl -w net.netfilter.nf_conntrack_max=131072), or have it left alone (conntrack.maxPerCore: 0)",
		},
		{Problem{Setting: Buckets, Err: fs.ErrPermission}, "finding one among many tracked connections takes longer; run "},
		{Problem{Setting: TCPEstablished, Have: 432000, Want: 86400, Err: fs.ErrPermission}, "silent TCP connections are forgotten after 120h0m0s, not 24h0m0s; run "},
		{Problem{Setting: TCPCloseWait, Have: 60, Want: 3600, Err: fs.ErrPermission}, "(conntrack.tcpCloseWaitTimeout: 0s)"},
		{Problem{Setting: UDP, Err: fs.ErrInvalid}, "ask for another value, or have it left alone (conntrack.udpTimeout: 0s)"},
		{Problem{Setting: UDPStream, Err: fs.ErrInvalid}, "(conntrack.udpStreamTimeout: 0s)"},
		{Problem{Setting: BeLiberal, Err: fs.ErrPermission}, "TCP packets out of window are dropped; run "},
		{
			Problem{Setting: OOMScoreAdj, Have: 0, Want: -999, Err: fs.ErrPermission},
			"when memory runs out, the kernel ends Sluice sooner than is asked for; run Sluice with CAP_SYS_RESOURCE, or ask for what it is (oomScoreAdj: 0)",
		},
		{Problem{Setting: OOMScoreAdj, Have: 0, Want: 5, Err: fs.ErrInvalid}, "ends Sluice later than is asked for; ask for another value, or for what it is (oomScoreAdj: 0)"},
		{Problem{Setting: OOMScoreAdj, Want: -999, Err: fs.ErrNotExist, unread: true}, "whether it is -999, as asked for, is not known; "},
		{Problem{Setting: UDP, Want: 5, Err: fs.ErrNotExist, unread: true}, "connection tracking is not loaded yet; it is set as soon as it can be"},
	} {
		text := c.p.String()
		if !strings.HasPrefix(text, c.p.Err.Error()+"; ") || !strings.Contains(text, c.want) {
			t.Errorf("got  %s\nwant … %s", text, c.want)
		}
	}
}
