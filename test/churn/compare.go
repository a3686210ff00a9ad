package churn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
)

// services is where connections to an address and port go, in order: one entry for each slot.
type services map[netip.AddrPort][]netip.AddrPort

// compare compares the kernel with the plan of what is there in the end. It reads the kernel on its own, not as the
// daemon does: the route of every frontend leads to a chain for as many slots as its list has, and these are the endpoints.
func compare(tb testing.TB, node *lab.Host, c Config) {
	tb.Helper()
	planner := plan.NewPlanner(policy())
	planner.Update(model.Delta(*outcome(c)))
	want := services{}
	for _, p := range planner.Plan().Ports {
		for _, f := range p.Frontends {
			at := netip.AddrPortFrom(f.Addr, f.Port)
			want[at] = nil
			for _, e := range p.Endpoints(plan.ListCluster) {
				want[at] = append(want[at], e.AddrPort)
			}
			slices.SortFunc(want[at], netip.AddrPort.Compare)
		}
	}
	got, err := inKernel(tb, node)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		tb.Errorf("the kernel (+) is not as the plan (-):\n%s", diff)
	}
}

// inKernel reads the maps.
func inKernel(tb testing.TB, node *lab.Host) (services, error) {
	tb.Helper()
	var conn *nfnl.Conn
	if err := node.Do(func() (err error) { conn, err = nfnl.Open(); return err }); err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	k := kernel{buckets: map[uint32]string{}, slots: map[uint32]map[uint32]netip.AddrPort{}, services: services{}}
	for _, set := range []struct {
		name string
		each func(*wire.Element) error
	}{{"buckets", k.bucket}, {"endpoints4", k.slot}, {"services4", k.service}} {
		kind, request := wire.ListElements("sluice", set.name)
		err := conn.Dump(tb.Context(), kind, request, func(_ uint16, data []byte) error {
			elements, err := wire.DecodeElements(data)
			if err != nil {
				return err
			}
			for e, err := range elements.All() {
				if err != nil {
					return err
				}
				if err := set.each(e); err != nil {
					return fmt.Errorf("set %s: %w", set.name, err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return k.services, k.left()
}

// kernel is the maps of the table, as far as they have been read.
type kernel struct {
	buckets  map[uint32]string
	slots    map[uint32]map[uint32]netip.AddrPort // by list
	services services
}

func (k *kernel) bucket(e *wire.Element) error {
	r := nft.NewReader(e.Key)
	k.buckets[r.Uint32()] = e.Verdict.Chain
	return nil
}

func (k *kernel) slot(e *wire.Element) error {
	key, data := nft.NewReader(e.Key), nft.NewReader(e.Data)
	list, slot := key.Uint32(), key.Uint32()
	if k.slots[list] == nil {
		k.slots[list] = map[uint32]netip.AddrPort{}
	}
	k.slots[list][slot] = netip.AddrPortFrom(data.Addr4(), data.Port())
	return nil
}

// service follows a route. One without a list leads to a refusal.
func (k *kernel) service(e *wire.Element) error {
	key, data := nft.NewReader(e.Key), nft.NewReader(e.Data)
	addr := key.Addr4()
	key.Uint32() // the protocol
	at, route := netip.AddrPortFrom(addr, key.Port()), data.Uint32()
	list := route &^ 0xfff
	slots := slices.SortedFunc(maps.Values(k.slots[list]), netip.AddrPort.Compare)
	k.services[at] = slots
	delete(k.slots, list)
	if chain, want := k.buckets[route&0xffc], fmt.Sprintf("random-%d", len(slots)); list != 0 && chain != want {
		return fmt.Errorf("%s has %d slots and goes to %s", at, len(slots), chain)
	}
	return nil
}

// left tells of slots that no route leads to.
func (k *kernel) left() error {
	if len(k.slots) > 0 {
		return fmt.Errorf("no route leads to these slots: %v", k.slots)
	}
	return nil
}
