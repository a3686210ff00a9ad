package nftables

import (
	"context"
	"fmt"
	"strconv"

	"sluice/internal/nft"
)

// look finds out what others did since the last Apply, and undoes it.
func (a *run) look(ctx context.Context) (err error) {
	h := a.drift.take()
	if h.broken && a.doubt == sure {
		a.doubt = others
	}
	if a.doubt == sure && (!h.proven || a.req.Recheck) {
		if err := a.prove(ctx, h.transactions); err != nil {
			return err
		}
	}
	doubt := a.doubt
	var names []string
	switch {
	case doubt != sure:
		a.fresh = true
		names, err = a.recheck(ctx)
	case len(h.keys) > 0:
		names, err = a.repair(ctx, h.keys)
	}
	if doubt != shaken {
		a.result.Restored = append(a.result.Restored, bounded(names)...)
	}
	if err != nil && a.doubt == sure {
		a.doubt = others // it was taken from what was heard
	}
	return err
}

// prove compares generations: if there were no other transactions than ours and those heard of, nothing is to be read.
func (a *run) prove(ctx context.Context, heard uint32) error {
	now, err := a.socket.Generation(ctx)
	switch {
	case err != nil:
		return err
	case now != a.drift.base+a.ours+heard:
		a.doubt = others
	default:
		a.drift.prove()
	}
	return nil
}

// meddled reports whether anybody else changed anything since this Apply read the kernel.
func (a *run) meddled(ctx context.Context) bool {
	now, err := a.socket.Generation(ctx)
	return err != nil || now != a.drift.base+a.ours
}

// rebase has prove count from now on.
func (a *run) rebase(ctx context.Context) error {
	now, err := a.socket.Generation(ctx)
	if err == nil {
		a.ours = 0
		a.drift.rebase(now)
	}
	return err
}

// askToLook asks for another Apply if this one ends in doubt: what others did while nobody listened is not told again.
func (b *Backend) askToLook() {
	if b.doubt != sure && b.listener != nil {
		b.changed()
	}
}

// deafly does what makes many changes of ours: the kernel would tell our listener of each, only to have it dropped. What
// others do meanwhile is not heard either, but shows in the generation.
func (a *run) deafly(ctx context.Context, f func() error) error {
	if a.listener == nil {
		return f()
	}
	if err := a.listener.Pause(); err != nil {
		return err
	}
	err := f()
	if err := a.listener.Resume(); err != nil {
		a.drift.lose()
		return err
	}
	if err != nil {
		a.drift.doubt()
		return err
	}
	return a.prove(ctx, a.drift.since())
}

// repair compares the elements that others touched with what they were.
func (a *run) repair(ctx context.Context, touched map[setID]map[nft.Value]struct{}) (names []string, err error) {
	c := a.known.unsorted()
	d := &a.delta
	d.reset()
	d.most = manyDifferences
	for set, keys := range touched {
		if keys == nil {
			err = a.compareAll(ctx, d, c, set, references{})
		} else {
			err = a.compareSome(ctx, d, c, set, keys)
		}
		if err != nil {
			return nil, err
		}
	}
	if d.over {
		return d.names(), a.reload(ctx, a.known.contents(), true)
	}
	return d.names(), a.send(ctx, d, func() {})
}

// compareAll compares a whole set.
func (a *run) compareAll(ctx context.Context, d *delta, c *contents, set setID, refs references) error {
	l, err := a.readSet(ctx, set)
	if err == nil {
		d.compare(c, set, refs, l.elements)
		err = l.err
	}
	return err
}

// compareSome compares some elements of a set.
func (a *run) compareSome(ctx context.Context, d *delta, c *contents, set setID, keys map[nft.Value]struct{}) error {
	want := map[nft.Value]nft.Element{}
	for e := range c.elements(set, references{}) {
		if _, ok := keys[e.Key]; ok {
			want[e.Key] = *e
		}
	}
	for key := range keys {
		have, found, err := a.find(ctx, set, key)
		if err != nil {
			return err
		}
		switch e, wanted := want[key]; {
		case found && wanted && sameElement(&have, &e):
		case found && wanted:
			d.remove[set], d.add[set] = append(d.remove[set], have), append(d.add[set], e)
			d.changed++
		case found:
			d.take(set, &have)
		case wanted:
			d.add[set] = append(d.add[set], e)
		}
	}
	return nil
}

// sameElement leaves out what the kernel counts.
func sameElement(a, b *nft.Element) bool {
	return a.Data == b.Data && a.Verdict == b.Verdict && a.Comment == b.Comment
}

// maxNames is how many differences are named.
const maxNames = 20

// names tells of what a delta does. Elements beyond some are only counted.
func (d *delta) names() (names []string) {
	names = d.frameNames()
	more := 0
	name := func(set setID, e *nft.Element) {
		if len(names) < maxNames {
			names = append(names, elementName(set, e))
		} else {
			more++
		}
	}
	for set := range setCount {
		added := map[nft.Value]bool{}
		for i := range d.add[set] {
			name(set, &d.add[set][i])
			added[d.add[set][i].Key] = len(d.remove[set]) > 0
		}
		for i := range d.remove[set] {
			if !added[d.remove[set][i].Key] {
				name(set, &d.remove[set][i])
			}
		}
		for i := range d.last[set] {
			name(set, &d.last[set][i])
		}
	}
	switch {
	case d.over:
		names = append(names, "thousands of elements")
	case more > 0:
		names = append(names, strconv.Itoa(more)+" more elements")
	}
	return names
}

// bounded names the first of many, and counts the others.
func bounded(names []string) []string {
	if len(names) <= maxNames+1 {
		return names
	}
	return append(names[:maxNames:maxNames], strconv.Itoa(len(names)-maxNames)+" more")
}

// elementName is like "element 10.96.0.10 . tcp . 80 of services4 (default/web:http)".
func elementName(set setID, e *nft.Element) string {
	name := fmt.Sprintf("element %s of %s", nft.AppendValue(nil, sets[set].Key, e.Key), sets[set].Name)
	if e.Comment != "" {
		name += " (" + e.Comment + ")"
	}
	return name
}
