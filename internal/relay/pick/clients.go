package pick

import (
	"container/list"
	"net/netip"
	"time"
)

// expirePerPick is how many clients whose time is over are forgotten with each one that comes, so that the table shrinks
// and no connection waits for it.
const expirePerPick = 2

// clients is which client has which endpoint. An endpoint that goes and comes back in time has its clients again, but
// for those that have got another.
type clients struct {
	timeout time.Duration
	limit   int
	byAddr  map[netip.Addr]*list.Element
	seen    list.List // of client, the one that was seen longest ago first
}

type client struct {
	addr     netip.Addr
	endpoint netip.AddrPort
	seen     time.Time
}

func newClients(timeout time.Duration, limit int) clients {
	return clients{timeout: timeout, limit: limit, byAddr: map[netip.Addr]*list.Element{}}
}

// keepFor changes the timeout, also for clients that are remembered.
func (c *clients) keepFor(timeout time.Duration) {
	if timeout <= 0 && c.seen.Len() > 0 {
		*c = newClients(timeout, c.limit)
	}
	c.timeout = timeout
}

func (c *clients) find(addr netip.Addr, now time.Time) (netip.AddrPort, bool) {
	if c.timeout <= 0 {
		return netip.AddrPort{}, false
	}
	place := c.byAddr[addr]
	if place == nil || c.old(place, now) {
		return netip.AddrPort{}, false
	}
	return place.Value.(*client).endpoint, true
}

func (c *clients) old(place *list.Element, now time.Time) bool {
	return now.Sub(place.Value.(*client).seen) >= c.timeout
}

// remember starts the client's time anew.
func (c *clients) remember(addr netip.Addr, endpoint netip.AddrPort, now time.Time) {
	if c.timeout <= 0 {
		return
	}
	c.expire(now)
	place := c.byAddr[addr]
	if place == nil {
		if c.seen.Len() >= c.limit {
			c.forget(c.seen.Front())
		}
		place = c.seen.PushBack(&client{addr: addr})
		c.byAddr[addr] = place
	}
	known := place.Value.(*client)
	known.endpoint, known.seen = endpoint, now
	c.seen.MoveToBack(place)
}

func (c *clients) expire(now time.Time) {
	for range expirePerPick {
		if first := c.seen.Front(); first != nil && c.old(first, now) {
			c.forget(first)
		}
	}
}

func (c *clients) forget(place *list.Element) {
	delete(c.byAddr, place.Value.(*client).addr)
	c.seen.Remove(place)
}
