package ipvs

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

var webID = plan.PortID{Service: model.Name{Namespace: "default", Name: "web"}, Port: "http", Protocol: model.TCP}

// TestRulesRefused: without rules nobody would be kept from a virtual server, so there is none; but one that was there
// before has the rules of then.
func TestRulesRefused(t *testing.T) {
	bad := errors.New("no room")
	for name, refuse := range map[string]func(*ruleset) (backend.Result, error){
		"one Service port": func(*ruleset) (backend.Result, error) {
			return backend.Result{Refused: map[plan.PortID]error{webID: bad}}, nil
		},
		"a family": func(*ruleset) (backend.Result, error) {
			return backend.Result{}, &backend.FamilyError{Family: model.IPv4, Err: bad}
		},
		"all": func(*ruleset) (backend.Result, error) { return backend.Result{}, bad },
	} {
		t.Run(name, func(t *testing.T) {
			w := newRig(t, Options{}, web(5))
			works := w.inner.applied
			w.inner.applied = refuse
			for range 2 {
				r, err := w.backend.Apply(t.Context(), w.rules, backend.Request{})
				if !errors.Is(errors.Join(err, r.Refused[webID]), bad) {
					t.Errorf("refused %v, error %v", r.Refused, err)
				}
				w.want("10.96.0.10/32")
			}
			hold := map[plan.PortID]bool{webID: true}
			if r, _ := w.backend.Apply(t.Context(), w.rules, backend.Request{Recheck: true, Hold: hold}); r.Written != 0 {
				t.Errorf("held: %+v", r)
			}
			w.inner.applied = works
			w.apply(backend.Request{})
			w.want(w.rules.wanted()...)

			w.inner.applied = refuse
			w.connect("10.244.1.5:8080", 1)
			w.change(web(5, 6))
			_, _ = w.backend.Apply(t.Context(), w.rules, backend.Request{}) // told as before
			w.want(w.rules.wanted()...)
		})
	}
}

// TestOmitted: a Service port without rules has no virtual servers, and loses those that it had as if it were gone.
func TestOmitted(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.inner.omits = []plan.PortID{webID}
	w.restart()
	w.apply(backend.Request{})
	w.want()
	for range 2 {
		w.inner.omits = nil
		w.change(web(5, 6))
		w.apply(backend.Request{})
		w.want(
			"-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 1", "10.96.0.10/32",
		)
		w.connect("10.244.1.5:8080", 1)
		w.inner.omits = []plan.PortID{webID}
		w.rules.Update(w.planner.Plan(), plan.Changes{}) // another Service port took the last mark
		w.apply(backend.Request{})
		w.apply(backend.Request{Recheck: true})
		w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "10.96.0.10/32")
	}
}

// TestBeyondMarks: where there are no marks left for clients outside, nothing leads them to the endpoints of others.
func TestBeyondMarks(t *testing.T) {
	d := model.Delta{Services: map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{}}
	for i := range backend.MaxMark + 2 {
		ip := netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)})
		s, sl := sample.Service(model.IPv4, []string{ip.String(), "10.244.1.5", "10.244.2.5"})
		s.Name.Name, sl.Name.Name = fmt.Sprint("s", i), fmt.Sprint("s", i)
		sl.Service = s.Name
		s.ExternalIPs, s.ExternalPolicy = []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})}, model.PolicyLocal
		d.Services[s.Name], d.Slices[sl.Name] = s, sl
	}
	w := newRig(t, Options{}, d)
	opts := nftables.DefaultOptions()
	opts.Deliver = nftables.DeliverIPVS
	r := Compile(w.planner.Plan(), Options{}, nftables.New(opts, nftables.Deps{}))
	omitted := r.rules.omitted()
	if len(omitted) != 2 {
		t.Errorf("%d Service ports have no rules, want 2", len(omitted))
	}
	marks := 0
	for s := range r.places {
		if s.Mark != 0 {
			marks++
		}
		if v := r.server(s); v != nil && omitted[v.Port] {
			t.Errorf("%s has no rules, and a virtual server: %s", v.Port, s)
		}
	}
	if marks != int(backend.MaxMark) {
		t.Errorf("%d virtual servers of marks", marks)
	}
}
