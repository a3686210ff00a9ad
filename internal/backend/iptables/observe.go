package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"sluice/internal/iptables/rules"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/nfnl"
	"sluice/internal/model"
	"sluice/internal/nft/wire"
)

// Tables are one family's tables in a kernel, as one variant of the iptables programs sees them.
type Tables interface {
	// Probe reads the smallest table, to see whether there are any; if not, the error is [ErrNoFamily].
	Probe(ctx context.Context) error
	// Save is what iptables-save prints.
	Save(ctx context.Context) ([]byte, error)
	// Restore gives text to iptables-restore --noflush. It waits for others that write at the same time.
	Restore(ctx context.Context, text []byte) error
	// Generation is a number that every change of any table, by anyone, makes another. It is not known of the legacy
	// variant.
	Generation() (number uint32, known bool, err error)
	// Packets tells how many packets each rule of a chain has matched, in order. It need not be right while somebody
	// writes the chain.
	Packets(ctx context.Context, table Table, chain string) ([]uint64, error)
}

// programs are the Tables of the network namespace of the calling thread.
type programs struct{ iptexec.Tables }

func programsOf(t *iptexec.Tools, f model.Family) programs {
	return programs{t.Tables(families[f], Filter.String(), Nat.String(), Mangle.String())}
}

// families are the programs' names for ours.
var families = [...]iptexec.Family{model.IPv4: iptexec.IPv4, model.IPv6: iptexec.IPv6}

// ErrNoFamily is [iptexec.ErrNoFamily].
var ErrNoFamily = iptexec.ErrNoFamily

// Packets asks nf_tables itself, which has a counter in every rule that the programs write. Of a chain that is written at
// this moment there may be rules from before and after.
func (p programs) Packets(ctx context.Context, table Table, chain string) (counts []uint64, err error) {
	if p.Tools.Variant != iptexec.NFT {
		return p.Tables.Packets(ctx, table.String(), chain)
	}
	conn, err := nfnl.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	numbers := map[iptexec.Family]uint8{iptexec.IPv4: nfIPv4, iptexec.IPv6: nfIPv6}
	kind, request := wire.ListRules(numbers[p.Family], table.String(), chain)
	err = conn.Sample(ctx, kind, request, func(_ uint16, data []byte) error {
		r, err := wire.DecodeRule(data)
		counts = append(counts, r.Packets)
		return err
	})
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return nil, fmt.Errorf("count packets in %s %s %s (%s): %w", p.Family, table, chain, p.Tools.Variant, err)
	}
	return counts, nil
}

// System is the Deps of this network namespace: the tables of the variant that is wanted or, if that is "", of the one
// that this node uses; and those of the other, if it is installed. It leaves RouteLocalnet to the caller.
func System(ctx context.Context, want iptexec.Variant) (d Deps, used iptexec.Variant, err error) {
	tools, err := iptexec.Choose(ctx, want)
	if err != nil {
		return d, "", err
	}
	if tools.Variant == iptexec.NFT {
		d.Listen = listen
	}
	others, err := iptexec.FindOther(ctx, tools.Variant)
	if err != nil {
		return d, "", err
	}
	for _, f := range model.Families {
		d.Tables[f] = programsOf(tools, f)
		if others != nil {
			d.Others = append(d.Others, Other{fmt.Sprintf("%s (%s)", f, others.Variant), programsOf(others, f)})
		}
	}
	return d, tools.Variant, nil
}

// Listener hears of transactions, as an [nfnl.Listener] does.
type Listener interface {
	Receive(ctx context.Context, each func(kind uint16, port uint32, data []byte)) error
	Pause() error
	Resume() error
	Close() error
}

// listen hears of all transactions in this network namespace.
func listen() (Listener, error) {
	l, err := nfnl.Listen(0)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// isLost reports whether a Listener missed something.
func isLost(err error) bool { return errors.Is(err, nfnl.ErrLost) }

// counted are Tables whose generation changes only by what others write. All families of nf_tables share one number,
// so they share the count of our own transactions as well.
type counted struct {
	Tables
	ours *uint32
	deaf func(func() error) error
}

// Restore counts its transactions: one for each table, of a text with a line that was refused one for each ahead of it.
// Of a text that fails otherwise, who knows how many there were; so afterwards the generation seems to have changed,
// which is what it should seem.
func (c counted) Restore(ctx context.Context, text []byte) error {
	err := c.deaf(func() error { return c.Tables.Restore(ctx, text) })
	if line := refusedLine(err); line > 0 {
		all := bytes.SplitAfter(text, []byte("\n"))
		text = bytes.Join(all[:min(line, len(all))-1], nil)
	}
	*c.ours += uint32(bytes.Count(text, []byte("\nCOMMIT\n")))
	return err
}

// Generation is the tables' own less our transactions.
func (c counted) Generation() (uint32, bool, error) {
	number, known, err := c.Tables.Generation()
	return number - *c.ours, known, err
}

// side is one family's tables and what is known of them.
type side struct {
	tables Tables
	// shadow is what the tables hold as far as is known, valid if known is set.
	shadow contents
	known  bool
	// generation is the tables' when the shadow was read, and written the number of our transactions by then, of which
	// ours is the count.
	generation, written uint32
	ours                *uint32

	held     held
	localnet localnet
	tally    tally
	gauge    *gauge
}

// forget makes the next refresh read everything.
func (s *side) forget() {
	s.shadow, s.known = contents{}, false
	s.gauge.known.Store(nil)
}

// mustRead reports whether the tables have to be read before they are compared with f: when they are not known, or
// someone else has written since. Where the kernel does not tell the latter, they are read before anything is written.
//
// A recheck trusts nothing that we only think to have written. But where there was no transaction at all since the last
// reading, another one would take seconds of a processor to find the same.
func (s *side) mustRead(f *family, recheck bool) (bool, error) {
	if !s.known {
		return true, nil
	}
	number, tells, err := s.tables.Generation()
	switch {
	case err != nil:
		return false, err
	case tells:
		return number != s.generation || recheck && *s.ours != s.written, nil
	}
	return recheck || s.delta(f).size() > 0, nil
}

// changedByOthers reports whether somebody has written since the tables were read.
func (s *side) changedByOthers() bool {
	number, tells, err := s.tables.Generation()
	return s.known && tells && err == nil && number != s.generation
}

// refresh reads the tables. It returns what was ours and is no longer as we left it.
func (s *side) refresh(ctx context.Context, known contents) (restored []string, err error) {
	written := *s.ours
	number, _, err := s.tables.Generation()
	if err != nil {
		return nil, err
	}
	now, err := read(ctx, s.tables, known)
	if err != nil {
		return nil, err
	}
	if s.known {
		restored = harm(s.shadow, now)
		s.held = held{} // what led to them may have gone
	}
	s.shadow, s.known, s.generation, s.written = now, true, number, written
	s.tally.held = now.count()
	return restored, nil
}

// read takes in what tables hold; see contentsOf.
func read(ctx context.Context, t Tables, known contents) (contents, error) {
	text, err := t.Save(ctx)
	if err != nil {
		return contents{}, err
	}
	rs, err := rules.Parse(bytes.NewReader(text))
	if err != nil {
		return contents{}, fmt.Errorf("read what iptables-save printed: %w", err)
	}
	return contentsOf(rs, known), nil
}

// harm lists the objects of ours that were as in was and are no longer.
func harm(was, now contents) (objects []string) {
	for _, t := range tables {
		for _, name := range slices.Sorted(maps.Keys(was[t])) {
			text, ok := now[t][name]
			if own(t, name) && (!ok || !sameText(was[t][name], text)) {
				objects = append(objects, t.String()+" "+name)
			}
		}
	}
	for _, j := range slices.Concat(jumps, firewallJumps) {
		if j.in(was) && !j.in(now) {
			objects = append(objects, j.String())
		}
	}
	return objects
}

// in reports whether the jump is in its chain.
func (j jump) in(c contents) bool { return slices.ContainsFunc(lines(c[j.table][j.from]), j.is) }
