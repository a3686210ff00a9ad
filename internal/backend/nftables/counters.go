package nftables

import "sluice/internal/plan"

// counters remember what the kernel forgets: elements go with their list, or with the table.
type counters struct {
	// last is what each list had counted when it was last read, by the key of its element.
	last map[uint32]uint64
	// gone is what lists that a Service port no longer has had counted.
	gone map[plan.PortID]uint64
	// went are the lists that went since a reading began, whose elements it may have seen; its lists may be others' now.
	went map[uint32]bool
	// tables is how often all lists were read because the table was about to be made anew.
	tables int
}

// take takes in what was read since tables was what it is, or was. Where the kernel has no list any more, what is known
// stays; so it does where there is another table, since all was read again before that was made.
func (c *counters) take(counts map[uint32]uint64, tables int) {
	if tables != c.tables {
		return
	}
	for list := range c.went {
		delete(counts, list)
	}
	for list, n := range c.last {
		if _, read := counts[list]; !read {
			counts[list] = n
		}
	}
	c.last, c.went = counts, nil
}

// of is what a Service port has had.
func (c *counters) of(id plan.PortID, p *port) uint64 {
	n := c.gone[id]
	for i := range p.lists {
		if number := p.lists[i].number; number != 0 {
			n += c.last[number.key()]
		}
	}
	return n
}

func (c *counters) note(list uint32, n uint64) {
	if c.last == nil {
		c.last = map[uint32]uint64{}
	}
	c.last[list] = n
}

// retire keeps what the lists have counted that a port had and has no more. A port that goes is forgotten.
func (c *counters) retire(id plan.PortID, old, now *port) {
	if now == nil {
		delete(c.gone, id)
	}
	for l := range retiring(old, now) {
		key := l.number.key()
		if now != nil {
			c.keep(id, c.last[key])
		}
		delete(c.last, key)
		if c.went != nil {
			c.went[key] = true
		}
	}
}

func (c *counters) keep(id plan.PortID, n uint64) {
	if c.gone == nil {
		c.gone = map[plan.PortID]uint64{}
	}
	c.gone[id] += n
}
