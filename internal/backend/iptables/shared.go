package iptables

import "strings"

// tableChain is a chain and its table.
type tableChain struct {
	table Table
	chain
}

// fixedChains are those that do not depend on any Service port. KUBE-FIREWALL is not among them: it is not ours
// alone.
func (c *compiler) fixedChains() []tableChain {
	return []tableChain{
		{Filter, c.forwardingRules()},
		{Filter, chain{name: chainCanary}},
		{Nat, c.masqueradeRules()},
		{Nat, c.markRules()},
		{Nat, chain{name: chainCanary}},
		{Mangle, chain{name: chainCanary}},
	}
}

// parts are the sections of a shared chain, in order.
type parts struct {
	table    Table
	sections []section
}

func partsOf(s section) parts {
	switch s {
	case natServices, natNotNodePorts:
		return parts{Nat, []section{natServices, natNotNodePorts}}
	case natNodePorts, natPing:
		return parts{Nat, []section{s}}
	case refuseAddresses, refuseNodePorts:
		return parts{Filter, []section{refuseAddresses, refuseNodePorts}}
	}
	return parts{Filter, []section{s}}
}

// concat puts the shared chain that has section s together.
func (f *family) concat(c *compiler, s section) {
	var text strings.Builder
	if s == natNodePorts {
		text.WriteString(c.nodePortGuard())
	}
	parts := partsOf(s)
	for _, part := range parts.sections {
		for _, g := range f.fragments {
			text.WriteString(g.lines[part])
		}
	}
	switch _, pings := c.pingTarget(); {
	case s == natPing && !pings:
		delete(f.chains[Nat], chainPing)
		return
	case s == natPing:
		f.set(Nat, chain{chainPing, onePing(text.String())})
		return
	case chainOf[s] == chainServices && parts.table == Nat:
		text.WriteString(c.pingJump() + c.nodePortJumps())
	}
	f.set(parts.table, chain{chainOf[s], text.String()})
}
