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
