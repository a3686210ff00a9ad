package nfnl

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	headerLen   = unix.SizeofNlMsghdr
	nfgenmsgLen = 4
)

// message is one netlink message. Its data are part of the buffer that it was read from.
type message struct {
	kind, flags uint16
	seq, port   uint32
	data        []byte
}

// cut takes the first message off the bytes of one or more. It is not ok if these are no message.
func cut(b []byte) (m message, rest []byte, ok bool) {
	if len(b) < headerLen {
		return message{}, nil, false
	}
	n := uint64(binary.NativeEndian.Uint32(b))
	if n < headerLen || n > uint64(len(b)) {
		return message{}, nil, false
	}
	m = message{
		kind:  binary.NativeEndian.Uint16(b[4:]),
		flags: binary.NativeEndian.Uint16(b[6:]),
		seq:   binary.NativeEndian.Uint32(b[8:]),
		port:  binary.NativeEndian.Uint32(b[12:]),
		data:  b[headerLen:n],
	}
	return m, b[min(aligned(int(n)), len(b)):], true
}

// appendRequest appends a message with the given payload.
func appendRequest(b []byte, kind, flags uint16, seq uint32, payload []byte) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(headerLen+len(payload)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0) // the kernel knows who sends
	return append(b, payload...)
}

// attribute takes the first attribute off the bytes of several.
func attribute(b []byte) (kind uint16, value, rest []byte, ok bool) {
	if len(b) < unix.SizeofNlAttr {
		return 0, nil, nil, false
	}
	n := int(binary.NativeEndian.Uint16(b))
	if n < unix.SizeofNlAttr || n > len(b) {
		return 0, nil, nil, false
	}
	kind = binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	return kind, b[unix.SizeofNlAttr:n], b[min(aligned(n), len(b)):], true
}

// aligned rounds up to where the next message or attribute begins.
func aligned(n int) int { return (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
