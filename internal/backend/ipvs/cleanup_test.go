package ipvs

import (
	"net/netip"
	"slices"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/ipvs"
)

// TestExcludedServiceGoes: in a range that is excluded, what a Service had goes with it, and no client is led to endpoints
// of once upon a time.
func TestExcludedServiceGoes(t *testing.T) {
	w := newRig(t, Options{ExcludeCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, web(5))
	w.apply(backend.Request{})
	w.connect("10.244.1.5:8080", 1)
	w.change(noWeb())
	w.apply(backend.Request{})
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "10.96.0.10/32")
	w.connect("10.244.1.5:8080", 0)
	w.restart()
	w.apply(backend.Request{})
	w.want()
}

// TestExcludedStays: who removes everything, at once or by and by, leaves virtual servers of others in ranges that are
// excluded, with their addresses.
func TestExcludedStays(t *testing.T) {
	foreign := ipvs.Server{Name: at(ipvs.TCP, "10.99.0.1:80"), Scheduler: "wlc"}
	remove := map[string]func(*rig) (done bool, err error){
		"cleanup": func(w *rig) (bool, error) {
			removed, err := w.backend.CleanupServers(t.Context())
			if !slices.Equal(removed, []string{"1 virtual server", "1 address of kube-ipvs0"}) {
				t.Errorf("removed %q", removed)
			}
			return true, err
		},
		"retire": func(w *rig) (bool, error) {
			left, err := w.backend.Retire(t.Context())
			return left == 0, err
		},
	}
	for name, f := range remove {
		t.Run(name, func(t *testing.T) {
			w := newRig(t, Options{ExcludeCIDRs: []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}}, web(5))
			must(t, w.kernel.Add(foreign))
			w.links[DeviceName] = map[netip.Prefix]bool{netip.MustParsePrefix("10.99.0.1/32"): true}
			w.apply(backend.Request{})
			for done := false; !done; {
				var err error
				done, err = f(w)
				must(t, err)
			}
			w.want("-t 10.99.0.1:80 -s wlc", "10.99.0.1/32")
		})
	}
}
