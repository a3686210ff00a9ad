package iptables

import (
	"net/netip"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// former lists the frontends that the rules in have serve and those in want do not. They are what a Service leaves
// that went while nobody watched; connections by way of it may still be open.
func (f *family) former(have contents) (keys []plan.Key) {
	wanted := map[plan.Key]bool{}
	for _, k := range f.served(f.chains) {
		wanted[k] = true
	}
	for _, k := range f.served(have) {
		if !wanted[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// served lists the frontends that lead to endpoints.
func (f *family) served(c contents) (keys []plan.Key) {
	for _, name := range []string{chainServices, chainNodePorts} {
		for _, l := range lines(c[Nat][name]) {
			if k, ok := f.keyOf(name, ruleOf(l).rule); ok {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// keyOf is the frontend of a rule in the chain of all frontends or in that of all node ports.
func (f *family) keyOf(chain string, r rules.Rule) (k plan.Key, ok bool) {
	p, err := r.Parse()
	if err != nil || !strings.HasPrefix(p.Target, "KUBE-") || p.Target == chainNodePorts {
		return k, false
	}
	if o, found := rules.Find(p.Header, "p"); found {
		number, _ := rules.ProtocolNumber(o.Value())
		k.Protocol = model.Protocol(number)
	}
	for _, m := range p.Matches {
		if o, found := rules.Find(m.Options, "dport"); found {
			k.Port, _, err = rules.ParsePorts(o.Value())
		}
	}
	if chain == chainNodePorts {
		k.Addr = f.family.Unspecified()
		return k, err == nil && k.Port != 0
	}
	to, found := rules.Find(p.Header, "d")
	if !found || err != nil {
		return k, false
	}
	addr, _, _ := strings.Cut(to.Value(), "/")
	k.Addr, err = netip.ParseAddr(addr)
	return k, err == nil && k.Port != 0
}
