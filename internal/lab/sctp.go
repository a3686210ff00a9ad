package lab

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
)

// The chunk types and the parameter of RFC 9260 that the lab speaks.
const (
	chunkInit       = 1
	chunkInitAck    = 2
	paramCookie     = 7
	sctpHeaderLen   = 12
	sctpInitLen     = 20 // chunk header and fixed fields
	sctpParamHeader = 4
)

// sctpPacket is an SCTP packet with one INIT or INIT ACK chunk.
type sctpPacket struct {
	src, dst uint16
	vtag     uint32 // verification tag: 0 in an INIT, the INIT's tag in its answer; connection tracking checks it
	chunk    byte
	tag      uint32 // initiate tag
	cookie   string // of an INIT ACK; the server's greeting
}

// newInit is an INIT, from a random port if src is 0.
func newInit(src, dst uint16) sctpPacket {
	if src == 0 {
		src = uint16(32768 + rand.IntN(28000))
	}
	return sctpPacket{src: src, dst: dst, chunk: chunkInit, tag: rand.Uint32() | 1}
}

// ack is the answer to an INIT.
func (p sctpPacket) ack(cookie string) sctpPacket {
	return sctpPacket{src: p.dst, dst: p.src, vtag: p.tag, chunk: chunkInitAck, tag: rand.Uint32() | 1, cookie: cookie}
}

func (p sctpPacket) bytes() []byte {
	be := binary.BigEndian
	b := be.AppendUint16(nil, p.src)
	b = be.AppendUint16(b, p.dst)
	b = be.AppendUint32(b, p.vtag)
	b = be.AppendUint32(b, 0) // checksum, below
	var params []byte
	if p.cookie != "" {
		params = be.AppendUint16(params, paramCookie)
		params = be.AppendUint16(params, uint16(sctpParamHeader+len(p.cookie)))
		params = append(params, p.cookie...)
	}
	b = append(b, p.chunk, 0)
	b = be.AppendUint16(b, uint16(sctpInitLen+len(params)))
	b = be.AppendUint32(b, p.tag)
	b = be.AppendUint32(b, 1<<16) // receive window
	b = be.AppendUint16(b, 1)     // outbound streams
	b = be.AppendUint16(b, 1)     // inbound streams
	b = be.AppendUint32(b, p.tag) // initial sequence number
	b = append(b, params...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// parseSCTP reads a packet that bytes wrote.
func parseSCTP(b []byte) (sctpPacket, bool) {
	if len(b) < sctpHeaderLen+sctpInitLen {
		return sctpPacket{}, false
	}
	be := binary.BigEndian
	chunk := b[sctpHeaderLen:]
	p := sctpPacket{
		src: be.Uint16(b), dst: be.Uint16(b[2:]), vtag: be.Uint32(b[4:]),
		chunk: chunk[0], tag: be.Uint32(chunk[4:]),
	}
	params := chunk[sctpInitLen:]
	if len(params) >= sctpParamHeader && be.Uint16(params) == paramCookie {
		n := int(be.Uint16(params[2:]))
		if n < sctpParamHeader || n > len(params) {
			return sctpPacket{}, false
		}
		p.cookie = string(params[sctpParamHeader:n])
	}
	return p, true
}
