package userspace

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"

	"sluice/internal/model"
	"sluice/internal/relay"
)

// ErrNoPort occurs when every port of the range is in use or reserved.
var ErrNoPort = errors.New("no port is left for the proxy")

// socket is a port of this node of one protocol and family. Those of another are another's.
type socket struct {
	family   model.Family
	protocol model.Protocol
	number   uint16
}

func socketOf(k relay.Key, number uint16) socket {
	return socket{k.Port.Family, k.Port.Protocol, number}
}

// ports gives each list a port of the node: always the same by its name, or the next one where that is taken. So the
// lists of a restarted process have the ports that they had, but for those that met by chance. It is pure.
type ports struct {
	in PortRange
	// reserved tells which sockets are not the proxy's.
	reserved func(socket) bool
	of       map[relay.Key]uint16
	owner    map[socket]relay.Key
	// before are those that lists had and get again if they can: rules may still lead there. Those of the process before
	// are kept for them.
	before map[relay.Key]uint16
	kept   map[socket]relay.Key
	// left are those that a list gave up. They are not given to another before the proxy has closed them: a connection that
	// is still led there would end at the wrong Service.
	left map[socket]bool
	// taken are those that some other program listens at.
	taken map[socket]bool
}

func newPorts(opts Options, reserved func(socket) bool) *ports {
	p := &ports{
		in: opts.Ports, reserved: reserved, of: map[relay.Key]uint16{}, owner: map[socket]relay.Key{},
		before: map[relay.Key]uint16{}, kept: map[socket]relay.Key{}, left: map[socket]bool{}, taken: map[socket]bool{},
	}
	for k, number := range opts.Before {
		if p.in.contains(number) {
			p.before[k], p.kept[socketOf(k, number)] = number, k
		}
	}
	return p
}

// take gives a list its port. It keeps the one that it has, as long as nobody else needs it.
func (p *ports) take(k relay.Key) (uint16, error) {
	if number, ok := p.of[k]; ok && !p.reserved(socketOf(k, number)) {
		return number, nil
	}
	p.release(k)
	for number := range p.candidates(k) {
		if s := socketOf(k, number); p.free(s, k) {
			delete(p.left, s)
			p.of[k], p.owner[s] = number, k
			return number, nil
		}
	}
	return 0, fmt.Errorf("%w in %s", ErrNoPort, p.in)
}

// candidates are the ports of the range in the order in which k tries them.
func (p *ports) candidates(k relay.Key) iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		if number, ok := p.before[k]; ok && !yield(number) {
			return
		}
		first := p.first(k)
		for i := range p.in.size() {
			if !yield(p.in.First + uint16((first+i)%p.in.size())) {
				return
			}
		}
	}
}

// free reports whether the list k may have a socket. One that it gave up is its own still.
func (p *ports) free(s socket, k relay.Key) bool {
	owner, owned := p.owner[s]
	keeper, kept := p.kept[s]
	switch {
	case owned && (owner != k || !p.left[s]), kept && keeper != k:
		return false
	}
	return !p.taken[s] && !p.reserved(s)
}

// first is where the search of k begins, counted from the first port of the range.
func (p *ports) first(k relay.Key) int {
	h := fnv.New64a()
	for _, part := range [...]string{k.Port.Service.Namespace, k.Port.Service.Name, k.Port.Port} {
		_, _ = io.WriteString(h, part+"\x00") // a hash takes everything
	}
	_, _ = h.Write([]byte{byte(k.List)})
	return int(h.Sum64() % uint64(p.in.size()))
}

// release takes a list's port back.
func (p *ports) release(k relay.Key) {
	if number, ok := p.of[k]; ok {
		delete(p.of, k)
		p.left[socketOf(k, number)] = true
		p.before[k] = number
	}
}

// occupied is for a port that turned out to be somebody else's.
func (p *ports) occupied(k relay.Key) {
	if number, ok := p.of[k]; ok {
		delete(p.of, k)
		delete(p.owner, socketOf(k, number))
		p.taken[socketOf(k, number)] = true
	}
}

// settle frees what was given up, save of lists that the proxy still listens for there.
func (p *ports) settle(keep func(relay.Key) bool) {
	for s := range p.left {
		if k := p.owner[s]; !keep(k) {
			delete(p.owner, s)
			delete(p.left, s)
			delete(p.before, k)
		}
	}
}
