package backend

import (
	"context"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Counter is a Backend that counts connections.
type Counter interface {
	// Connections tells how many new connections each Service port has had since its counter was made. A port that is
	// not in the kernel is absent. It may be called at any time.
	Connections(context.Context) (map[plan.PortID]uint64, error)
}

// RuleCounter is a Backend whose rules are in tables of iptables.
type RuleCounter interface {
	// Rules tells of the tables whose contents are known. It waits for nobody.
	Rules() []TableRules
}

// TableRules are numbers of rules in one family's table: those in chains of ours that the kernel has, and those that the
// last Apply wrote.
type TableRules struct {
	Family        model.Family
	Table         string
	Held, Written int
}

// PacketCounter is a Backend whose rules count packets.
type PacketCounter interface {
	// Packets tells what they have counted. It reads the kernel, for no longer than ctx, and waits for no Apply.
	Packets(ctx context.Context) (Packets, error)
}

// Packets are numbers of packets, of both families, that only grow while a process lasts; nil: there is no rule that
// counts them. Those that a rule counts between the last reading and the moment when it is written anew are missing.
type Packets struct {
	// Invalid were dropped because connection tracking calls them invalid.
	Invalid *uint64
	// Localhost began connections to node ports at loopback addresses.
	Localhost *uint64
}
