package demo

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/lab"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// tableName is the table that the daemon writes.
const tableName = "sluice"

// table is the node's table as others than the daemon see it, over netlink: what nft would do, without nft.
type table struct{ node *lab.Host }

// do opens a socket to nf_tables on the node.
func (t table) do(f func(*nfnl.Conn) error) error {
	return t.node.Do(func() error {
		conn, err := nfnl.Open()
		if err != nil {
			return err
		}
		return errors.Join(f(conn), conn.Close())
	})
}

// commit has the kernel do what a batch says.
func (t table) commit(ctx context.Context, fill func(*wire.Batch)) error {
	batch := wire.NewBatch(tableName)
	fill(batch)
	return t.do(func(conn *nfnl.Conn) error { return conn.Commit(ctx, batch.Finish()) })
}

// dump reads the messages that answer a request. What is not there has none. While others write, it begins again.
func (t table) dump(ctx context.Context, kind uint16, request []byte) (messages [][]byte, err error) {
	err = t.do(func(conn *nfnl.Conn) error {
		for {
			messages = nil
			err := conn.Dump(ctx, kind, request, func(_ uint16, data []byte) error {
				messages = append(messages, slices.Clone(data))
				return nil
			})
			if !errors.Is(err, nfnl.ErrInterrupted) {
				return err
			}
		}
	})
	if errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	return messages, err
}

// elements are those of a set.
func (t table) elements(ctx context.Context, set string) (all []nft.Element, err error) {
	kind, request := wire.ListElements(tableName, set)
	messages, err := t.dump(ctx, kind, request)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		list, err := wire.DecodeElements(m)
		if err != nil {
			return nil, err
		}
		for e, err := range list.All() {
			if err != nil {
				return nil, err
			}
			all = append(all, e.Element)
		}
	}
	return all, nil
}

// exists reports whether the table is there.
func (t table) exists(ctx context.Context) (bool, error) {
	kind, request := wire.ListTables(wire.FamilyInet)
	messages, err := t.dump(ctx, kind, request)
	return slices.ContainsFunc(messages, func(m []byte) bool { return wire.IsAbout(m, wire.FamilyInet, tableName) }), err
}

// everything is all that the kernel tells of the table: with the handles, which are new for what is written anew, and
// with what was counted.
func (t table) everything(ctx context.Context) (string, error) {
	kind, request := wire.ListSets(tableName)
	sets, err := t.dump(ctx, kind, request)
	if err != nil {
		return "", err
	}
	var all []string
	add := func(kind uint16, request []byte) {
		messages, dumpErr := t.dump(ctx, kind, request)
		err = errors.Join(err, dumpErr)
		for _, m := range messages {
			const header = 4 // it has the generation, which is looked at by itself
			all = append(all, string(m[header:]))
		}
	}
	add(kind, request)
	add(wire.ListChains(wire.FamilyInet))
	add(wire.ListRules(wire.FamilyInet, tableName, ""))
	for _, m := range sets {
		set, decodeErr := wire.DecodeSet(m)
		err = errors.Join(err, decodeErr)
		add(wire.ListElements(tableName, set.Name))
	}
	slices.Sort(all)
	return strings.Join(all, "\n"), err
}

// generation is the number of the present state of all tables.
func (t table) generation(ctx context.Context) (id uint32, err error) {
	err = t.do(func(conn *nfnl.Conn) (err error) {
		id, err = conn.Generation(ctx)
		return err
	})
	return id, err
}

// services4 is the map from cluster IPs to lists of endpoints.
func services4() *nft.Set {
	return &nft.Set{
		Name: "services4",
		Key:  []nft.Field{{Type: nft.IPv4Addr}, {Type: nft.InetProto}, {Type: nft.InetService}},
		Data: []nft.Field{{Type: nft.ClassID}},
	}
}

// keyOf is the key of a TCP port in it.
func keyOf(at netip.AddrPort) nft.Value {
	return nft.Value{}.Addr(at.Addr()).Proto(syscall.IPPROTO_TCP).Port(at.Port())
}
