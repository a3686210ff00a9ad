package iptexec

import (
	"context"
	"errors"
	"slices"

	"sluice/internal/kernel/nfnl"
)

// Choose returns the tools for the variant that this node uses: want, unless it is ""; else the one whose mangle table
// holds a chain by which kubelet marks its choice (KUBE-IPTABLES-HINT, or KUBE-KUBELET-CANARY of older versions); else
// the system's default. A kernel without nf_tables leaves no choice.
func Choose(ctx context.Context, want Variant) (*Tools, error) {
	if want != "" {
		return Find(ctx, want)
	}
	if nfnl.Absent() {
		return Find(ctx, Legacy)
	}
	for _, v := range []Variant{NFT, Legacy} {
		t, err := Find(ctx, v)
		if errors.Is(err, ErrNotInstalled) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hinted, err := t.holds(ctx, "mangle", "KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY")
		if err != nil {
			return nil, err
		}
		if hinted {
			return t, nil
		}
	}
	return Find(ctx, "")
}

// FindOther finds the programs of the variant that v is not; nil where they are not installed, or where the kernel can have
// no rules of theirs.
func FindOther(ctx context.Context, v Variant) (*Tools, error) {
	other := NFT
	if v == NFT {
		other = Legacy
	} else if nfnl.Absent() {
		return nil, nil
	}
	t, err := Find(ctx, other)
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil
	}
	return t, err
}

// holds reports whether the table has one of the chains in either family.
func (t *Tools) holds(ctx context.Context, table string, chains ...string) (bool, error) {
	for _, f := range []Family{IPv4, IPv6} {
		have, err := t.Chains(ctx, f, table)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(have, func(name string) bool { return slices.Contains(chains, name) }) {
			return true, nil
		}
	}
	return false, nil
}
