package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// ErrMalformed is what the decoders return for bytes that are no attributes, or not those of such a message.
var ErrMalformed = errors.New("malformed message of nf_tables")

// reader takes attributes one after the other. It is bad once something is malformed, and then has no more.
type reader struct {
	rest []byte
	bad  bool
}

// body reads the attributes of a message's data, which begin behind struct nfgenmsg.
func body(data []byte) (family uint8, r reader) {
	if len(data) < familyHeader {
		return 0, reader{bad: true}
	}
	return data[0], reader{rest: data[familyHeader:]}
}

// next takes an attribute. Its type comes without flags.
func (r *reader) next() (kind uint16, value []byte, ok bool) {
	if len(r.rest) == 0 || r.bad {
		return 0, nil, false
	}
	if len(r.rest) < attrHeader {
		r.bad = true
		return 0, nil, false
	}
	n := int(binary.NativeEndian.Uint16(r.rest))
	if n < attrHeader || n > len(r.rest) {
		r.bad = true
		return 0, nil, false
	}
	const typeMask = 1<<14 - 1 // NLA_TYPE_MASK
	kind, value = binary.NativeEndian.Uint16(r.rest[2:])&typeMask, r.rest[attrHeader:n]
	r.rest = r.rest[min((n+3)&^3, len(r.rest)):]
	return kind, value, true
}

// uint32 reads a number in network order; another length makes r bad.
func (r *reader) uint32(v []byte) uint32 {
	if len(v) != 4 {
		r.bad = true
		return 0
	}
	return binary.BigEndian.Uint32(v)
}

func (r *reader) uint64(v []byte) uint64 {
	if len(v) != 8 {
		r.bad = true
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

// find takes attributes until one of a type comes; nil: there is none.
func (r *reader) find(kind uint16) []byte {
	for {
		k, v, ok := r.next()
		if !ok {
			return nil
		}
		if k == kind {
			return v
		}
	}
}

// err is what was wrong, if anything.
func (r *reader) err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// text is a string without the zero at its end.
func text(v []byte) string {
	if i := bytes.IndexByte(v, 0); i >= 0 {
		v = v[:i]
	}
	return string(v)
}

// udata finds one entry of user data; nil: there is none. What is malformed in it counts as absent, for it may be
// somebody else's.
func udata(b []byte, kind uint8) []byte {
	for len(b) >= 2 {
		n := 2 + int(b[1])
		if n > len(b) {
			return nil
		}
		if b[0] == kind {
			return b[2:n]
		}
		b = b[n:]
	}
	return nil
}

// comment is the comment in user data. Bytes that are no UTF-8 are replaced: it will be printed.
func comment(userdata []byte, kind uint8) string {
	return strings.ToValidUTF8(text(udata(userdata, kind)), "\uFFFD")
}

// IsAbout reports whether a message is about a table or something in it, by data, which is what follows the netlink
// header. It looks no further than the table's name, which comes first in messages of every kind but NewGen.
func IsAbout(data []byte, family uint8, table string) bool {
	const begin = familyHeader + attrHeader
	if len(data) < begin+len(table)+1 || data[0] != family {
		return false
	}
	length, kind := binary.NativeEndian.Uint16(data[familyHeader:]), binary.NativeEndian.Uint16(data[familyHeader+2:])
	return kind == tableName && int(length) == attrHeader+len(table)+1 && string(data[begin:begin+len(table)]) == table
}
