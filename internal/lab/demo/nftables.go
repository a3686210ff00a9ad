package demo

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// nftablesRules are those of mode nftables.
type nftablesRules struct{ *story }

// flags are none: the kernel tells the daemon what others do.
func (*nftablesRules) flags() []string { return nil }

func (r *nftablesRules) table() table { return table{r.node} }

// explain shows what belongs to the Services as `sluice render` prints it. That it is in the kernel is what `sluice diff`
// tells.
func (r *nftablesRules) explain(ctx context.Context) error {
	rendered, err := r.render(ctx)
	if err != nil {
		return err
	}
	r.say("The daemon wrote one table, inet %s. Its chains are the same whatever Services there are, and a Service is", tableName)
	r.say("elements of its maps. Those of the registry, as sluice render prints them:")
	r.print("")
	r.quote(r.elements(rendered, "registry"))
	r.print("")
	r.say("And those of mysql-service, which has a node port, too:")
	r.print("")
	r.quote(r.elements(rendered, "mysql-service"))
	r.print("")
	if err := r.read(rendered); err != nil {
		return err
	}
	r.compare(ctx)
	return nil
}

// elements are those of a Service.
func (r *nftablesRules) elements(rendered, service string) string {
	words := []string{`"default/` + service}
	for _, e := range r.ends(rendered, service) {
		words = append(words, fmt.Sprintf(": %s . %d", e.Addr(), e.Port()))
	}
	return elementsWith(rendered, words...)
}

// ends are where the elements of a Service lead.
func (r *nftablesRules) ends(rendered, service string) (all []netip.AddrPort) {
	if r.proxied() {
		return proxiesOf(rendered, service)
	}
	for _, p := range r.behind(service) {
		all = append(all, p.endpoint())
	}
	return all
}

// read says how to read the elements.
func (r *nftablesRules) read(rendered string) error {
	number, chain, err := routeOf(rendered, "node-ports4", "default/mysql-service")
	if err != nil {
		return err
	}
	r.say("%s, where the node port leads, is three numbers in one: %s, a list of endpoints; %s, the chain that", number, number.list(), number.bucket())
	r.say("chooses among them, which map buckets says is %s; and in the last bits whose source address becomes the", chain)
	r.say("node's. With --keep and nft, \"nft list table inet %s\" shows all of it.", tableName)
	return nil
}

func (r *nftablesRules) leadTo(ctx context.Context, endpoint netip.AddrPort) (bool, error) {
	elements, err := r.table().elements(ctx, "endpoints4")
	want := nft.Value{}.Addr(endpoint.Addr()).Port(endpoint.Port())
	return slices.ContainsFunc(elements, func(e nft.Element) bool { return e.Data == want }), err
}

// damages are that somebody deletes the element for a cluster IP, and then everything.
func (r *nftablesRules) damages(ctx context.Context) ([]damage, error) {
	before, err := r.contents(ctx)
	if err != nil {
		return nil, err
	}
	mended := func() (bool, error) {
		now, err := r.contents(ctx)
		return maps.Equal(before, now), err
	}
	at := netip.MustParseAddrPort(mysqlAddress)
	element := func(b *wire.Batch) { b.DeleteElement(services4(), &nft.Element{Key: keyOf(at)}) }
	return []damage{
		{
			command: fmt.Sprintf("nft delete element inet %s services4 '{ %s . tcp . %d }'", tableName, at.Addr(), at.Port()),
			do:      func() error { return r.table().commit(ctx, element) },
			mended:  mended, soon: theKernelTells,
		},
		{
			command: "nft delete table inet " + tableName,
			do:      func() error { return r.table().commit(ctx, (*wire.Batch).DeleteTable) },
			mended:  mended, soon: theKernelTells,
		},
	}, nil
}

// place is where an element is.
type place struct {
	set string
	key nft.Value
}

// contents are where addresses lead and where lists do.
func (r *nftablesRules) contents(ctx context.Context) (map[place]nft.Value, error) {
	all := map[place]nft.Value{}
	for _, set := range []string{"services4", "node-ports4", "endpoints4"} {
		elements, err := r.table().elements(ctx, set)
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			all[place{set, e.Key}] = e.Data
		}
	}
	return all, nil
}

func (r *nftablesRules) state(ctx context.Context) (all string, generation uint32, err error) {
	if generation, err = r.table().generation(ctx); err != nil {
		return "", 0, err
	}
	all, err = r.table().everything(ctx)
	return all, generation, err
}

func (r *nftablesRules) leftovers(ctx context.Context) (string, error) {
	there, err := r.table().exists(ctx)
	if !there {
		return "", err
	}
	return "table inet " + tableName, err
}
