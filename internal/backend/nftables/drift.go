package nftables

import (
	"sync"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// heardKeys is how many keys of a set are remembered; if others touch more, all of the set is read.
const heardKeys = 256

// drift is what others did to our table, by what the kernel tells. It is written by who listens and read by Apply.
type drift struct {
	mu sync.Mutex
	heard
	base uint32 // the generation that everything later counts from
}

// heard is what was heard since it was last taken.
type heard struct {
	// listening is set while somebody listens, and proven if what happened before was seen as well.
	listening, proven bool
	// broken is set if anything but elements was touched, or if something was missed.
	broken bool
	// keys are the elements touched, by set. A nil map stands for all of the set.
	keys map[setID]map[nft.Value]struct{}
	// transactions are those of others after the base.
	transactions uint32
}

// begin is for a new listener.
func (d *drift) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listening, d.proven, d.transactions = true, false, 0
}

func (d *drift) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listening, d.proven = false, false
}

// lose is for a listener that missed something.
func (d *drift) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken, d.proven = true, false
}

// hear takes in a message. Most are of other tables, and cost a look at the table's name.
func (d *drift) hear(kind uint16, data []byte) (touched bool) {
	switch {
	case kind == wire.NewGen:
		d.count(data)
		return false
	case !wire.IsAbout(data, wire.FamilyInet, tableName):
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if kind == wire.NewElement || kind == wire.DelElement {
		return d.elements(data)
	}
	d.broken = true
	return true
}

// count counts a transaction. One from before the base may be heard after it.
func (d *drift) count(data []byte) {
	g, err := wire.DecodeGeneration(data)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && int32(uint32(g)-d.base) > 0 {
		d.transactions++
	}
}

// elements takes in a message about elements.
func (d *drift) elements(data []byte) (touched bool) {
	m, err := wire.DecodeElements(data)
	set, ok := setNamed(m.Set)
	switch {
	case err != nil, !ok:
		d.broken = true
		return true
	case isOfClients(set):
		return false
	case d.keys == nil:
		d.keys = map[setID]map[nft.Value]struct{}{}
	}
	keys, seen := d.keys[set]
	if !seen && !sets[set].Interval {
		keys = map[nft.Value]struct{}{}
	}
	for e, err := range m.All() {
		switch {
		case err != nil || len(keys) >= heardKeys:
			keys = nil
		case keys != nil:
			keys[e.Key] = struct{}{}
		}
	}
	d.keys[set] = keys
	return true
}

// take hands out what was heard, and forgets it.
func (d *drift) take() heard {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.heard
	d.broken, d.keys = false, nil
	return h
}

// prove says that nothing was missed so far.
func (d *drift) prove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proven = d.listening
}

// since is how many transactions of others were heard of since the base.
func (d *drift) since() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.transactions
}

// doubt says that something may have been missed.
func (d *drift) doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proven = false
}

// rebase has transactions be counted from a generation on.
func (d *drift) rebase(generation uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base, d.transactions, d.proven = generation, 0, d.listening
}

// setNamed finds a set by its name.
func setNamed(name string) (setID, bool) {
	for id := range sets {
		if sets[id].Name == name {
			return setID(id), true
		}
	}
	return 0, false
}
