package udp

import (
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/net/ipv4"

	"sluice/internal/kernel/datagram"
)

const (
	// batchSize is how many datagrams are read by one system call, each into a buffer of 64 KiB.
	batchSize = 8
	// lentBatches is how many Listeners hold a batch at a time.
	lentBatches = 4
	// controlSize holds the control messages of either family.
	controlSize = 128
)

// packet is a buffer for a datagram with room for a header of the PROXY protocol before it.
type packet [headerSize + datagram.Size]byte

// batch is what one system call reads into.
type batch struct {
	messages [batchSize]ipv4.Message
	packets  [batchSize]packet
	control  [batchSize][controlSize]byte
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.messages {
		b.messages[i].Buffers = [][]byte{b.packets[i][headerSize:]}
		b.messages[i].OOB = b.control[i][:]
	}
	return b
}

// incoming is a datagram of a client. It is gone with the batch that it is in.
type incoming struct {
	key
	packet *packet // what the client sent is from headerSize on
	size   int
}

func (d incoming) payload() []byte { return d.packet[headerSize : headerSize+d.size] }

// incoming is the datagram in a message that was read, if it is one that can be passed on.
func (b *batch) incoming(i int, by *socket) (d incoming, ok bool) {
	m := &b.messages[i]
	client, isUDP := m.Addr.(*net.UDPAddr)
	if !isUDP || m.Flags&syscall.MSG_TRUNC != 0 {
		return incoming{}, false
	}
	at := client.AddrPort()
	local, ok := by.sentTo(m.OOB[:m.NN])
	if !ok || local.IsMulticast() || at.Port() == 0 {
		return incoming{}, false
	}
	d = incoming{packet: &b.packets[i], size: m.N}
	d.client, d.local = netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), local
	return d, true
}

// batches lends batches, a few at a time: there may be thousands of Listeners.
type batches struct {
	lent chan struct{}
	free *sync.Pool
}

func newBatches() batches {
	return batches{lent: make(chan struct{}, lentBatches), free: &sync.Pool{New: func() any { return newBatch() }}}
}

func (p batches) take() *batch {
	p.lent <- struct{}{}
	return p.free.Get().(*batch)
}

func (p batches) give(b *batch) {
	p.free.Put(b)
	<-p.lent
}
