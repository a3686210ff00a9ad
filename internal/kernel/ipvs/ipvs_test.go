package ipvs_test

import (
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/ipvs"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// open returns a handle for a namespace of its own.
func open(t *testing.T) *ipvs.Handle {
	t.Helper()
	nstest.RequireIPVS(t)
	ns, err := netns.New()
	must(t, err)
	var h *ipvs.Handle
	must(t, ns.Do(func() (err error) { h, err = ipvs.Open(); return err }))
	t.Cleanup(func() { _ = h.Close(); _ = ns.Close() })
	return h
}

func web(text string) ipvs.Server {
	to := netip.MustParseAddrPort(text)
	return ipvs.Server{Name: ipvs.Name{Addr: to.Addr(), Protocol: ipvs.TCP, Port: to.Port()}, Scheduler: "rr"}
}

func to(text string, weight uint32) ipvs.Destination {
	return ipvs.Destination{AddrPort: netip.MustParseAddrPort(text), Weight: weight}
}

// Whatever is written is read back the same, flags that no kernel knows included.
func TestServersAreReadAsWritten(t *testing.T) {
	h := open(t)
	if all, err := h.Servers(); err != nil || len(all) != 0 {
		t.Fatalf("a new namespace has %v, %v", all, err)
	}
	written := []ipvs.Server{
		web("10.96.0.10:80"), web("[fd00:96::a]:80"),
		{Name: ipvs.Name{Addr: netip.MustParseAddr("10.96.0.10"), Protocol: ipvs.UDP, Port: 53}, Scheduler: "wrr", Persistence: 3 * time.Hour},
		{Name: ipvs.Name{Addr: netip.MustParseAddr("10.96.0.10"), Protocol: ipvs.SCTP, Port: 53}, Scheduler: "lc", Flags: 0x51000000},
		{Name: ipvs.Name{Addr: netip.MustParseAddr("fd00:96::a"), Protocol: ipvs.TCP, Port: 443}, Scheduler: "mh", Flags: ipvs.SchedulerFlag1 | ipvs.SchedulerFlag2, Persistence: time.Minute},
		{Name: ipvs.Name{Addr: netip.IPv4Unspecified(), Mark: 5}, Scheduler: "rr", Flags: 0x51000000},
		{Name: ipvs.Name{Addr: netip.IPv6Unspecified(), Mark: 5}, Scheduler: "sh"},
	}
	for _, s := range written {
		must(t, h.Add(s))
	}
	check(t, h, written)
	written[0].Scheduler, written[0].Persistence, written[0].Flags = "wlc", time.Second, 0x51000000
	must(t, h.Set(written[0]))
	check(t, h, written)
	must(t, h.Delete(written[0].Name))
	check(t, h, written[1:])
}

func check(t *testing.T, h *ipvs.Handle, want []ipvs.Server) {
	t.Helper()
	all, err := h.Servers()
	must(t, err)
	if len(all) != len(want) {
		t.Fatalf("%d servers, want %d: %+v", len(all), len(want), all)
	}
	for _, f := range all {
		if !slices.Contains(want, f.Server) || f.Grouped {
			t.Errorf("found %+v", f)
		}
	}
}

func TestDestinations(t *testing.T) {
	h := open(t)
	for _, s := range []ipvs.Server{web("10.96.0.10:80"), {Name: ipvs.Name{Addr: netip.IPv4Unspecified(), Mark: 7}, Scheduler: "rr"}} {
		must(t, h.Add(s))
		one, two := to("10.244.1.5:8080", 1), to("10.244.1.6:8080", 65535)
		must(t, h.AddDestination(s.Name, one))
		must(t, h.AddDestination(s.Name, two))
		one.Weight = 0
		must(t, h.SetDestination(s.Name, one))
		got, err := h.Destinations(s.Name)
		must(t, err)
		if len(got) != 2 || !slices.Contains(got, ipvs.FoundDestination{Destination: one}) || !slices.Contains(got, ipvs.FoundDestination{Destination: two}) {
			t.Errorf("%s has %+v", s.Name, got)
		}
		must(t, h.DeleteDestination(s.Name, one))
		if got, err = h.Destinations(s.Name); err != nil || len(got) != 1 || got[0].Destination != two {
			t.Errorf("%s has %+v, %v", s.Name, got, err)
		}
	}
}

// What the kernel says can be told apart, and the message names what it is about.
func TestErrors(t *testing.T) {
	h := open(t)
	s, d := web("10.96.0.10:80"), to("10.244.1.5:8080", 1)
	lacking := web("10.96.0.11:80")
	lacking.Scheduler = "nosuch"
	must(t, h.Add(s))
	must(t, h.AddDestination(s.Name, d))
	other := web("10.96.0.12:80").Name
	_, listErr := h.Destinations(other)
	for _, tt := range []struct {
		err  error
		is   syscall.Errno
		text string
	}{
		{h.Add(s), syscall.EEXIST, "add virtual server TCP 10.96.0.10:80: "},
		{h.Add(lacking), syscall.ENOENT, "add virtual server TCP 10.96.0.11:80: "},
		{h.Set(ipvs.Server{Name: s.Name, Scheduler: "nosuch"}), syscall.ENOENT, "change virtual server TCP 10.96.0.10:80: "},
		{h.Set(web("10.96.0.12:80")), syscall.ESRCH, "change virtual server TCP 10.96.0.12:80: "},
		{h.Delete(other), syscall.ESRCH, "delete virtual server TCP 10.96.0.12:80: "},
		{h.AddDestination(s.Name, d), syscall.EEXIST, "add destination 10.244.1.5:8080 of virtual server TCP 10.96.0.10:80: "},
		{h.SetDestination(s.Name, to("10.244.1.9:8080", 0)), syscall.ENOENT, "change destination 10.244.1.9:8080 of virtual server TCP 10.96.0.10:80: "},
		{h.DeleteDestination(s.Name, to("10.244.1.9:8080", 0)), syscall.ENOENT, "delete destination 10.244.1.9:8080 of virtual server TCP 10.96.0.10:80: "},
		{h.AddDestination(other, d), syscall.ESRCH, "add destination 10.244.1.5:8080 of virtual server TCP 10.96.0.12:80: "},
		{listErr, 0, ""},
	} {
		if tt.is == 0 {
			if tt.err != nil {
				t.Errorf("%v, want none", tt.err)
			}
			continue
		}
		if !errors.Is(tt.err, tt.is) || len(tt.err.Error()) < len(tt.text) || tt.err.Error()[:len(tt.text)] != tt.text {
			t.Errorf("%v, want %s%v", tt.err, tt.text, tt.is)
		}
	}
}

func TestTryScheduler(t *testing.T) {
	h := open(t)
	// Linux loads a scheduler while it holds the lock of all virtual servers. These two wait for namespaces that end, and
	// such a namespace may wait for that lock: the three would wait for each other without end.
	if out, err := exec.Command("modprobe", "-a", "ip_vs_lblc", "ip_vs_lblcr").CombinedOutput(); err != nil {
		t.Fatalf("modprobe: %v: %s", err, out)
	}
	taken := ipvs.Server{Name: ipvs.Name{Addr: netip.IPv4Unspecified(), Mark: 0x7fffff00}, Scheduler: "rr"}
	must(t, h.Add(taken))
	for _, name := range []string{"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "sed", "nq", "fo", "ovf", "mh"} {
		if err := h.TryScheduler(name); err != nil {
			t.Error(err)
		}
	}
	if err := h.TryScheduler("nosuch"); !errors.Is(err, ipvs.ErrNoScheduler) {
		t.Errorf("error %v, want %v", err, ipvs.ErrNoScheduler)
	}
	check(t, h, []ipvs.Server{taken})
}

func TestTimeouts(t *testing.T) {
	h := open(t)
	before, err := h.Timeouts()
	must(t, err)
	must(t, h.SetTimeouts(ipvs.Timeouts{UDP: 7 * time.Second}))
	before.UDP = 7 * time.Second
	if got, err := h.Timeouts(); err != nil || got != before {
		t.Errorf("timeouts %+v, %v, want %+v", got, err, before)
	}
}

func TestVersion(t *testing.T) {
	if v, err := open(t).Version(); err != nil || v < "1.2" {
		t.Errorf("version %q, %v", v, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
