package bench

import (
	"fmt"
	"net/netip"
	"testing"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/crowd"
)

// bareTable is the name of Sluice's table, so that the bytes are as many.
const bareTable = "sluice"

// byHand is the elements that Sluice makes of a crowd, as batches of bytes made by hand and beforehand: what the kernel
// takes for them is what nobody can do without. There are no rules: they cost the same whatever the number of Services.
type byHand struct {
	*testing.B
	crowd crowd.Crowd
	node  *lab.Host
	end   func()
	conn  *nfnl.Conn
	sets  bareSets
}

// bareSets are the sets that such a crowd has elements in.
type bareSets struct{ hairpin, endpoints, clusterIPs, services, connections nft.Set }

func newByHand(b *testing.B, c crowd.Crowd) *byHand {
	b.Helper()
	raw := &byHand{B: b, crowd: c, sets: newBareSets(c)}
	raw.node, raw.end = emptyNode(b)
	if err := raw.node.Do(func() (err error) { raw.conn, err = nfnl.Open(); return err }); err != nil {
		b.Fatal(err)
	}
	return raw
}

// clear makes the kernel as it was.
func (raw *byHand) clear() {
	raw.Helper()
	batch := wire.NewBatch(bareTable)
	batch.AddTable(nft.Table{Name: bareTable})
	batch.DeleteTable()
	if err := raw.commit(batch.Finish()); err != nil {
		raw.Fatal(err)
	}
}

func (raw *byHand) close() {
	raw.Helper()
	if err := raw.conn.Close(); err != nil {
		raw.Error(err)
	}
	raw.end()
}

func newBareSets(c crowd.Crowd) bareSets {
	field := func(t nft.Type) nft.Field { return nft.Field{Type: t} }
	addr, proto, port, number := field(nft.IPv4Addr), field(nft.InetProto), field(nft.InetService), field(nft.ClassID)
	services, endpoints := uint32(sizeFor(c.Services)), uint32(sizeFor(c.Services*c.Endpoints))
	return bareSets{
		hairpin:     nft.Set{Name: "hairpin4", Key: []nft.Field{addr, addr, proto, port}, Size: endpoints},
		endpoints:   nft.Set{Name: "endpoints4", Key: []nft.Field{number, number}, Data: []nft.Field{addr, port}, Size: endpoints},
		clusterIPs:  nft.Set{Name: "cluster-ips4", Key: []nft.Field{addr}, Size: services},
		services:    nft.Set{Name: "services4", Key: []nft.Field{addr, proto, port}, Data: []nft.Field{number}, Size: services},
		connections: nft.Set{Name: "connections", Key: []nft.Field{number}, Counter: true, Size: services},
	}
}

// all lists them in the order in which they are filled.
func (s *bareSets) all() []*nft.Set {
	return []*nft.Set{&s.hairpin, &s.endpoints, &s.clusterIPs, &s.services, &s.connections}
}

// sizeFor leaves a quarter free, as Sluice does.
func sizeFor(elements int) int {
	size := 1 << 12
	for elements > size/4*3 {
		size *= 2
	}
	return size
}

// each yields the elements that a Service has in a set.
func (raw *byHand) each(set *nft.Set, i int, yield func(*nft.Element)) {
	key, comment := nft.Value{}.Uint32(uint32(i+1)<<12), fmt.Sprintf("default/service-%d", i)
	switch set {
	case &raw.sets.clusterIPs:
		yield(&nft.Element{Key: nft.Value{}.Addr(crowd.ClusterIP(i)), Comment: comment})
	case &raw.sets.services:
		route := uint32(i+1)<<12 | 3<<2
		yield(&nft.Element{Key: frontend(i), Data: nft.Value{}.Uint32(route), Comment: comment + ":http"})
	case &raw.sets.connections:
		yield(&nft.Element{Key: key, Comment: comment + ":http"})
	default:
		for e := range raw.crowd.Endpoints {
			yield(raw.ofEndpoint(set, i, e, raw.crowd.Endpoint(i, e, 0)))
		}
	}
}

// frontend is the key by which clients find a Service.
func frontend(i int) nft.Value {
	return nft.Value{}.Addr(crowd.ClusterIP(i)).Proto(uint8(model.TCP)).Port(crowd.Port)
}

// ofEndpoint is the element that an endpoint has in the map of slots or in the set of those that call themselves.
func (raw *byHand) ofEndpoint(set *nft.Set, i, slot int, at netip.Addr) *nft.Element {
	if set == &raw.sets.hairpin {
		return &nft.Element{Key: nft.Value{}.Addr(at).Addr(at).Proto(uint8(model.TCP)).Port(crowd.TargetPort)}
	}
	return &nft.Element{
		Key: nft.Value{}.Uint32(uint32(i+1) << 12).Uint32(uint32(slot)), Data: nft.Value{}.Addr(at).Port(crowd.TargetPort),
	}
}

// bareBatch is about how many bytes a transaction has.
const bareBatch = 4 << 20

// load measures the commits of the whole table.
func (raw *byHand) load() cost {
	raw.Helper()
	batch := wire.NewBatch(bareTable)
	batch.AddTable(nft.Table{Name: bareTable})
	for _, set := range raw.sets.all() {
		batch.AddSet(set)
	}
	var batches [][]byte
	for _, set := range raw.sets.all() {
		for i := range raw.crowd.Services {
			if batch.Len() > bareBatch {
				batches = append(batches, batch.Finish())
				batch = wire.NewBatch(bareTable)
			}
			raw.each(set, i, func(e *nft.Element) { batch.AddElement(set, e) })
		}
	}
	return measure(raw.B, func() error { return raw.commit(append(batches, batch.Finish())...) })
}

func (raw *byHand) commit(batches ...[]byte) error {
	for _, b := range batches {
		if err := raw.conn.Commit(raw.Context(), b); err != nil {
			return err
		}
	}
	return nil
}

// change measures the commit of one change.
func (raw *byHand) change(ch change, i int) cost {
	raw.Helper()
	batch, service := wire.NewBatch(bareTable), ch.of(raw.crowd, i)
	for _, set := range raw.sets.all() {
		switch ch.kind {
		case added:
			raw.each(set, service, func(e *nft.Element) { batch.AddElement(set, e) })
		case removed:
			raw.each(set, service, func(e *nft.Element) { batch.DeleteElement(set, e) })
		case changed:
			if set == &raw.sets.hairpin || set == &raw.sets.endpoints {
				batch.DeleteElement(set, raw.ofEndpoint(set, service, 0, raw.crowd.Endpoint(service, 0, 0)))
				batch.AddElement(set, raw.ofEndpoint(set, service, 0, raw.crowd.Endpoint(service, 0, 1)))
			}
		}
	}
	bytes := batch.Finish()
	return measureNow(raw.B, func() error { return raw.commit(bytes) })
}

// hasElementsOf reports an error unless both kernels have as many elements: else there is nothing to compare.
func (raw *byHand) hasElementsOf(s *sluice) {
	raw.Helper()
	for _, set := range raw.sets.all() {
		if a, b := elementsIn(raw.B, raw.node, set.Name), elementsIn(raw.B, s.node, set.Name); a != b || a == 0 {
			raw.Errorf("set %s: %d elements made by hand, %d by Sluice", set.Name, a, b)
		}
	}
}

// elementsIn counts the elements of a set on a node.
func elementsIn(b *testing.B, node *lab.Host, set string) (n int) {
	b.Helper()
	err := node.Do(func() error {
		conn, err := nfnl.Open()
		if err != nil {
			return err
		}
		defer conn.Close()
		kind, request := wire.ListElements(bareTable, set)
		return conn.Dump(b.Context(), kind, request, func(_ uint16, data []byte) error {
			elements, err := wire.DecodeElements(data)
			if err != nil {
				return err
			}
			for _, err := range elements.All() {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		})
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}
