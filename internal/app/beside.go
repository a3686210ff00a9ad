package app

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"sluice/internal/backend/iptables"
	"sluice/internal/backend/nftables"
	"sluice/internal/iptables/rules"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/model"
	"sluice/internal/trace"
)

// A trace walks the rules of one mode. A packet passes those of everybody: each table of nf_tables, and legacy iptables
// beside it, may still drop it or send it elsewhere.

// meetOthers adds to what was found about a packet of a family the chains that it passes beside those that were walked.
func (k keeps) meetOthers(ctx context.Context, f model.Family, r *trace.Result) error {
	var others []trace.Chain
	if !nfnl.Absent() {
		found, err := k.otherTables(ctx, f)
		if err != nil {
			return err
		}
		others = found
	}
	if k.chains != iptexec.Legacy && iptexec.LegacyInUse() {
		found, err := legacyChains(ctx, f)
		if err != nil {
			r.Warnings = append(r.Warnings, "whether packets also pass rules of legacy iptables is not known: "+err.Error())
		}
		others = append(others, found...)
	}
	r.Meet(others)
	return nil
}

// otherTables are the base chains of nf_tables that were not walked.
func (k keeps) otherTables(ctx context.Context, f model.Family) (others []trace.Chain, err error) {
	err = withNFTables(nftables.Deps{}, func(b *nftables.Backend) error {
		chains, err := b.BaseChains(ctx, f)
		maps.DeleteFunc(chains, func(t nftables.Table, _ []trace.Chain) bool { return k.has(t) })
		for _, t := range slices.SortedFunc(maps.Keys(chains), nftables.Table.Compare) {
			others = append(others, chains[t]...)
		}
		return err
	})
	return others, err
}

// has reports whether a table of nf_tables is one of the rules.
func (k keeps) has(t nftables.Table) bool {
	ofIPTables := t.Family == "ip" || t.Family == "ip6"
	return k.table && t == nftables.Ours ||
		k.chains == iptexec.NFT && ofIPTables && slices.Contains(walkedTables, t.Name)
}

// walkedTables are those of iptables that a walk is given.
var walkedTables = []string{iptables.Filter.String(), iptables.Nat.String(), iptables.Mangle.String()}

// legacyChains are the built-in chains of legacy iptables.
func legacyChains(ctx context.Context, f model.Family) ([]trace.Chain, error) {
	deps, _, err := iptables.System(ctx, iptexec.Legacy)
	if err != nil {
		return nil, err
	}
	saved, err := deps.Tables[f].Save(ctx)
	if errors.Is(err, iptables.ErrNoFamily) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rs, err := rules.Parse(bytes.NewReader(saved))
	if err != nil {
		return nil, err
	}
	return builtIn(rs, f), nil
}

// builtIn describes the chains that have a policy.
func builtIn(rs *rules.Ruleset, f model.Family) (all []trace.Chain) {
	family := [...]string{model.IPv4: "ip", model.IPv6: "ip6"}[f]
	for _, t := range rs.Tables {
		for _, c := range t.Chains {
			if c.Policy != "" {
				all = append(all, trace.Chain{
					Table: family + " " + t.Name + " of legacy iptables", Name: c.Name,
					Hook: strings.ToLower(c.Name), Policy: strings.ToLower(c.Policy), Rules: len(c.Rules),
				})
			}
		}
	}
	return all
}
