package iptexec

import (
	"bytes"
	"context"
	"errors"
)

// Choose returns the tools for the variant that this node uses: want, unless it is ""; else the one whose mangle table
// holds a chain by which kubelet marks its choice (KUBE-IPTABLES-HINT, or KUBE-KUBELET-CANARY of older versions); else
// the system's default.
func Choose(ctx context.Context, want Variant) (*Tools, error) {
	if want != "" {
		return Find(ctx, want)
	}
	for _, v := range []Variant{NFT, Legacy} {
		t, err := Find(ctx, v)
		if errors.Is(err, ErrNotInstalled) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hinted, err := t.holds(ctx, "mangle", ":KUBE-IPTABLES-HINT ", ":KUBE-KUBELET-CANARY ")
		if err != nil {
			return nil, err
		}
		if hinted {
			return t, nil
		}
	}
	return Find(ctx, "")
}

// OtherHolds reports whether the other variant's nat or filter table holds chains whose name starts with KUBE-, which
// then act on packets too. Where the other variant is not installed it reports false.
func (t *Tools) OtherHolds(ctx context.Context) (bool, error) {
	other, err := Find(ctx, t.Variant.other())
	if errors.Is(err, ErrNotInstalled) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, table := range []string{"nat", "filter"} {
		held, err := other.holds(ctx, table, ":KUBE-")
		if held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// holds reports whether a line of the table in either family starts with one of the prefixes.
func (t *Tools) holds(ctx context.Context, table string, prefixes ...string) (bool, error) {
	for _, f := range []Family{IPv4, IPv6} {
		text, err := t.Save(ctx, f, table)
		if err != nil {
			return false, err
		}
		for _, p := range prefixes {
			if bytes.Contains(text, []byte("\n"+p)) {
				return true, nil
			}
		}
	}
	return false, nil
}
