package ipsets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/internal/backend"
	"sluice/internal/iptables/rules"
	"sluice/internal/iptables/sets"
	"sluice/internal/kernel/ipset"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Backend writes sets and rules. It is safe for concurrent use.
type Backend struct {
	opts Options
	deps Deps

	gauges [2]*gauge // by family; nil: there is none

	mu    sync.Mutex // guards what follows
	sides [2]*side   // by family; nil: the family is left out
	began bool       // there was an Apply
}

// Deps are the kernel's parts that a Backend works with.
type Deps struct {
	// Tables are those of each family; nil: this machine cannot do the family.
	Tables [2]Tables
	// Others are those of the other variant of the programs, where an earlier proxy may have left chains. They are only
	// cleaned up.
	Others []Other
	// Sets opens the sets. Each Apply closes what it opened.
	Sets func() (Sets, error)
}

// Other is tables and what they are called in messages.
type Other struct {
	Name string // "IPv4, legacy"
	Tables
}

// New makes a Backend. It touches nothing.
func New(opts Options, deps Deps) *Backend {
	b := &Backend{opts: opts, deps: deps}
	for f, t := range deps.Tables {
		if t != nil {
			b.gauges[f] = &gauge{tables: t}
			b.sides[f] = &side{family: model.Family(f), tables: t, held: map[string]map[string]bool{}, gauge: b.gauges[f]}
		}
	}
	return b
}

// Name says what form of mode ipvs this is half of.
func (b *Backend) Name() string { return "ipvs (ipsets)" }

// Compile compiles a Plan.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset { return Compile(p, b.opts) }

// Apply makes the kernel's sets and tables hold what r says. See [backend.Backend].
func (b *Backend) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (total backend.Result, err error) {
	rs, ok := r.(*Ruleset)
	if !ok {
		return total, fmt.Errorf("apply: %T is not a ruleset of mode ipvs in the form of iptables", r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sides == [2]*side{} {
		return total, ErrNoFamily
	}
	conn, err := b.deps.Sets()
	if err != nil {
		return total, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	start := time.Now()
	if err := b.look(conn, rs, req, &total); err != nil {
		return total, err
	}
	total.Phases.Since(start, backend.Read)
	var errs []error
	for _, s := range b.sides {
		if s == nil {
			continue
		}
		err := s.apply(ctx, conn, rs.families[s.family], req, &total)
		if errors.Is(err, ErrNoFamily) {
			b.sides[s.family] = nil
		}
		if err != nil {
			errs = append(errs, &backend.FamilyError{Family: s.family, Err: err})
		}
	}
	return total, errors.Join(errs...)
}

// look reads the sets if they are not known, or are not to be trusted.
func (b *Backend) look(conn Sets, rs *Ruleset, req backend.Request, total *backend.Result) error {
	trusted := func(s *side) bool { return s == nil || s.known && !req.Recheck }
	if trusted(b.sides[0]) && trusted(b.sides[1]) {
		return nil
	}
	have, err := readSets(conn)
	if err != nil {
		return err
	}
	for _, s := range b.sides {
		if s == nil {
			continue
		}
		if s.known {
			total.Restored = append(total.Restored, harmedSets(s.family, &s.sets, &have[s.family])...)
		}
		if !b.began {
			total.Former = append(total.Former, rs.families[s.family].formerKeys(&have[s.family])...)
		}
		s.sets, s.known, s.of = have[s.family], true, nil
	}
	b.began = true
	return nil
}

// harmedSets lists the sets that were as in was and are no longer.
func harmedSets(f model.Family, was, now *contents) (objects []string) {
	for k := range kinds {
		if was[k] == nil || now[k] != nil && mapsEqual(was[k].Entries, now[k].Entries) {
			continue
		}
		objects = append(objects, f.String()+" set "+setName(k, f))
	}
	return objects
}

func mapsEqual(a, b map[sets.Entry]uint32) bool {
	for e, mark := range a {
		if m, ok := b[e]; !ok || m != mark {
			return false
		}
	}
	return len(a) == len(b)
}

// apply writes what differs: first what sets are to have, then the rules, and then it destroys sets that no rule names any
// more.
func (s *side) apply(ctx context.Context, conn Sets, f *family, req backend.Request, total *backend.Result) error {
	if err := s.applySets(ctx, conn, f, req, total); err != nil {
		s.known = false
		return err
	}
	if err := s.applyRules(ctx, f, req, total); err != nil {
		s.wrote = nil
		s.gauge.known.Store(nil)
		return err
	}
	return s.destroyStale(conn, f, total)
}

// applySets writes entries. One that is refused is held against its Service port; all others are written.
func (s *side) applySets(ctx context.Context, conn Sets, f *family, req backend.Request, total *backend.Result) error {
	start := time.Now()
	if s.of != f {
		f.adopt(&s.sets)
	}
	held := f.placesOf(req.Hold)
	places, remembered := f.since(s.position)
	all := s.of != f || !remembered
	for p := range s.retry {
		places = append(slices.Clip(places), p)
	}
	ds := f.setChanges(&s.sets, places, all, held)
	start = total.Phases.Since(start, backend.Compare)
	defer func() { total.Phases.Since(start, backend.Write) }()
	retry := held
	for i := range ds {
		if err := ctx.Err(); err != nil {
			return err
		}
		refused, err := s.writeSet(conn, f, &ds[i], total)
		if err != nil {
			return err
		}
		for _, e := range refused {
			retry[place{ds[i].kind, e}] = true
		}
	}
	s.of, s.position, s.retry = f, f.position(), retry
	return nil
}

// temporary is the name of a set that is filled before it takes another one's place.
var temporary = [2]string{model.IPv4: "KUBE-SLUICE-TEMPORARY", model.IPv6: "KUBE-6-SLUICE-TEMPORARY"}

// writeSet makes one set what it is to be. It tells which entries the kernel refused.
func (s *side) writeSet(conn Sets, f *family, d *setDelta, total *backend.Result) (refused []sets.Entry, err error) {
	name, err := s.prepare(conn, d)
	if err == nil && len(d.remove) > 0 {
		err = conn.Delete(name, kernelEntries(d.remove))
	}
	if err == nil && len(d.add) > 0 {
		refused, err = s.add(conn, f, name, d, total)
	}
	if err == nil && name == temporary[s.family] {
		err = conn.Swap(name, d.header.Name)
		err = errors.Join(err, conn.Destroy(name))
	}
	if err != nil {
		return nil, err
	}
	total.Written += d.size()
	s.sets.advance(d)
	return refused, nil
}

// prepare makes a set that is to be made, and tells under which name. One that takes the place of another, which rules name,
// is filled under a name of its own first.
func (s *side) prepare(conn Sets, d *setDelta) (name string, err error) {
	name, h := setName(d.kind, s.family), d.header
	if h.Name == "" {
		return name, nil
	}
	if d.replace {
		err = conn.Destroy(name)
	}
	if errors.Is(err, ipset.ErrInUse) {
		name = temporary[s.family]
		err = conn.Destroy(name)
	}
	if err != nil {
		return name, err
	}
	return name, conn.Create(ipset.Header{
		Name: name, Type: string(h.Type), IPv6: h.Type != sets.BitmapPort && s.family == model.IPv6,
		HashSize: h.HashSize, MaxElem: h.MaxElem, Marks: h.Marks,
	})
}

// add adds entries. It takes those that are refused out of d, and tells of whom they are.
func (s *side) add(conn Sets, f *family, name string, d *setDelta, total *backend.Result) (refused []sets.Entry, err error) {
	if conn.Add(name, kernelItems(d.add)) == nil {
		return nil, nil
	}
	var added []item
	for _, i := range d.add {
		err := conn.Add(name, kernelItems([]item{i}))
		if err == nil {
			added = append(added, i)
			continue
		}
		id, ok := f.ownerOf(place{d.kind, i.Entry})
		if !ok {
			return nil, err
		}
		total.Refuse(id, fmt.Errorf("entry of Service port %s (%s): %w", id, id.Protocol, err))
		refused = append(refused, i.Entry)
	}
	d.add = added
	return refused, nil
}

func kernelItems(items []item) []ipset.Item {
	out := make([]ipset.Item, len(items))
	for i, it := range items {
		out[i] = ipset.Item{Entry: ipset.Entry(it.Entry), Mark: it.mark}
	}
	return out
}

func kernelEntries(entries []sets.Entry) []ipset.Entry {
	out := make([]ipset.Entry, len(entries))
	for i, e := range entries {
		out[i] = ipset.Entry(e)
	}
	return out
}

// applyRules writes rules that differ. Tables are read when others may have written, as far as the kernel tells, or when
// there is anything to write.
func (s *side) applyRules(ctx context.Context, f *family, req backend.Request, total *backend.Result) error {
	start := time.Now()
	number, tells, err := s.tables.Generation()
	if err != nil {
		return err
	}
	if s.wrote == f.tables && !req.Recheck && (!tells || number == s.generation) {
		s.gauge.publish(s.family, s.wrote, nil)
		return nil
	}
	have, err := readRules(ctx, s.tables)
	if err != nil {
		return err
	}
	if s.wrote != nil {
		total.Restored = append(total.Restored, harmedRules(s.family, s.wrote, have)...)
	}
	start = total.Phases.Since(start, backend.Read)
	d, err := s.restore(ctx, diff(f.tables, have))
	total.Phases.Since(start, backend.Write)
	if err != nil {
		return err
	}
	// A generation that is from before our own transaction makes the next Apply read once more, and see who wrote.
	s.wrote, s.generation = f.tables, number
	s.gauge.publish(s.family, s.wrote, d)
	total.Written += d.size()
	return nil
}

// restore writes d. A chain that turns out to be held is emptied and left where it is.
func (s *side) restore(ctx context.Context, d delta) (delta, error) {
	for {
		for table, chains := range s.held {
			d[table].spare(chains)
		}
		if d.size() == 0 {
			return d, nil
		}
		err := s.tables.Restore(ctx, d.text())
		if d["filter"].writes(chainForwarding) && err == nil {
			s.gauge.rewritten()
		}
		refused, ok := errors.AsType[*iptexec.RestoreError](err)
		if !ok {
			return d, err
		}
		table, chain, ok := d.removal(refused.Line)
		if !ok {
			return d, err
		}
		if s.held[table] == nil {
			s.held[table] = map[string]bool{}
		}
		s.held[table][chain] = true
	}
}

// harmedRules lists the chains and jumps that were written and are not there any more as they were.
func harmedRules(f model.Family, was, now *rules.Ruleset) (objects []string) {
	for _, name := range tableNames {
		for _, chain := range ownChains[name] {
			if !sameRules(was.Table(name).Chain(chain), now.Table(name).Chain(chain)) {
				objects = append(objects, fmt.Sprintf("%s %s %s", f, name, chain))
			}
		}
	}
	for _, j := range jumps {
		is := func(r rules.Rule) bool { return rules.Equal(r, j.rule) }
		if !slices.ContainsFunc(rulesOf(now.Table(j.table).Chain(j.from)), is) {
			objects = append(objects, f.String()+" "+j.String())
		}
	}
	return objects
}

// destroyStale destroys the sets that are not to be there. One that a foreign rule names stays, without entries.
func (s *side) destroyStale(conn Sets, f *family, total *backend.Result) error {
	for k := range kinds {
		set := s.sets[k]
		if set == nil || f.present(k) {
			continue
		}
		err := conn.Destroy(set.Name)
		if errors.Is(err, ipset.ErrInUse) {
			err = s.flush(conn, k)
		} else if err == nil {
			s.sets[k] = nil
			total.Written++
		}
		if err != nil {
			s.known = false
			return err
		}
	}
	return nil
}

func (s *side) flush(conn Sets, k kind) error {
	d := setDelta{kind: k}
	for e := range s.sets[k].Entries {
		d.remove = append(d.remove, e)
	}
	if err := conn.Delete(s.sets[k].Name, kernelEntries(d.remove)); err != nil {
		return err
	}
	s.sets.advance(&d)
	return nil
}
