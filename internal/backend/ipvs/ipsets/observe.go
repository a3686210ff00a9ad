package ipsets

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sluice/internal/iptables/rules"
	"sluice/internal/iptables/sets"
	"sluice/internal/kernel/ipset"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
)

// Tables are one family's tables in a kernel, as one variant of the iptables programs sees them.
type Tables interface {
	// Save is what iptables-save prints.
	Save(ctx context.Context) ([]byte, error)
	// Restore gives text to iptables-restore --noflush. It waits for others that write at the same time.
	Restore(ctx context.Context, text []byte) error
	// Generation is a number that every change of any table, by anyone, makes another. It is not known of the legacy
	// variant.
	Generation() (number uint32, known bool, err error)
	// Packets tells how many packets each rule of a chain has matched, in order.
	Packets(ctx context.Context, table, chain string) ([]uint64, error)
}

// Sets are the sets of a kernel, as an [ipset.Conn] has them.
type Sets interface {
	List() ([]ipset.Set, error)
	Create(h ipset.Header) error
	Add(set string, items []ipset.Item) error
	Delete(set string, entries []ipset.Entry) error
	Swap(a, b string) error
	Destroy(name string) error
	Close() error
}

// families are the programs' names for ours.
var families = [...]iptexec.Family{model.IPv4: iptexec.IPv4, model.IPv6: iptexec.IPv6}

// ErrNoFamily is [iptexec.ErrNoFamily].
var ErrNoFamily = iptexec.ErrNoFamily

// ErrNoSets occurs when the kernel has no ipset. Then there are no rules of this form, either.
var ErrNoSets = errors.New("the kernel has no sets for rules of iptables")

// System is the Deps of this network namespace: the tables of the variant that is wanted or, if that is "", of the one
// that this node uses; those of the other, if it is installed; and the sets. Families that the kernel lacks are left out;
// if it lacks both the error is [ErrNoFamily]. It is [ErrNoSets] where there is no ipset.
func System(ctx context.Context, want iptexec.Variant) (d Deps, used iptexec.Variant, err error) {
	tools, err := iptexec.Choose(ctx, want)
	if err != nil {
		return d, "", err
	}
	others, err := iptexec.FindOther(ctx, tools.Variant)
	if err != nil {
		return d, "", err
	}
	errs := []error{probeSets()}
	for _, f := range model.Families {
		ours := tools.Tables(families[f], tableNames[:]...)
		switch err := ours.Probe(ctx); {
		case err == nil:
			d.Tables[f] = ours
		case !errors.Is(err, ErrNoFamily):
			errs = append(errs, err)
		}
		if others == nil {
			continue
		}
		if theirs := others.Tables(families[f], tableNames[:]...); !errors.Is(theirs.Probe(ctx), ErrNoFamily) {
			d.Others = append(d.Others, Other{fmt.Sprintf("%s (%s)", f, others.Variant), theirs})
		}
	}
	if d.Tables == [2]Tables{} {
		errs = append(errs, ErrNoFamily)
	}
	d.Sets = openSets
	return d, tools.Variant, errors.Join(errs...)
}

func openSets() (Sets, error) {
	c, err := ipset.Open()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// probeSets reads all sets, to see whether the kernel has any such thing.
func probeSets() error {
	c, err := ipset.Open()
	if err != nil {
		return err
	}
	_, err = c.List()
	if errors.Is(err, ipset.ErrAbsent) {
		err = fmt.Errorf("%w: %w", ErrNoSets, err)
	}
	return errors.Join(err, c.Close())
}

// readRules takes in what tables hold.
func readRules(ctx context.Context, t Tables) (*rules.Ruleset, error) {
	text, err := t.Save(ctx)
	if err != nil {
		return nil, err
	}
	rs, err := rules.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read what iptables-save printed: %w", err)
	}
	return rs, nil
}

// readSets takes in the sets of ours or kube-proxy's. One that is not what sets of its kind are has nil Entries.
func readSets(s Sets) (have [2]contents, err error) {
	all, err := s.List()
	if err != nil {
		return have, err
	}
	for _, set := range all {
		k, f, ok := kindOf(set.Name)
		if !ok {
			continue
		}
		is := &sets.Set{Header: sets.Header{Name: set.Name, Type: sets.Type(set.Type), Family: f}}
		if is.Type == forms[k].typ && !set.Other && (is.Type == sets.BitmapPort || set.IPv6 == (f == model.IPv6)) {
			is.HashSize, is.MaxElem, is.Marks = set.HashSize, set.MaxElem, set.Marks
			is.Entries = make(map[sets.Entry]uint32, len(set.Entries))
			for _, i := range set.Entries {
				is.Entries[sets.Entry(i.Entry)] = i.Mark
			}
		}
		have[f][k] = is
	}
	return have, nil
}

// side is one family's tables and what is known of them and of its sets.
type side struct {
	family model.Family
	tables Tables
	held   map[string]map[string]bool // chains by table that the kernel did not remove

	// sets are those that the kernel has, valid if known is set.
	sets  contents
	known bool
	// of is the family that the sets were last made equal to, as of position; retry are entries that were left out.
	of       *family
	position int
	retry    map[place]bool

	// wrote are the rules that were last written; nil: none, or who knows. Then generation was that of the tables.
	wrote      *rules.Ruleset
	generation uint32
	gauge      *gauge
}
