package wire_test

import (
	"encoding/binary"

	"pgregory.net/rapid"
)

// message is one netlink message of a batch.
type message struct {
	kind, flags uint16
	seq         uint32
	data        []byte
}

// messages takes a batch apart. Every message must be whole and aligned.
func messages(t rapid.TB, b []byte) (all []message) {
	t.Helper()
	for len(b) > 0 {
		n := binary.NativeEndian.Uint32(b)
		if n < 20 || n%4 != 0 || int(n) > len(b) {
			t.Fatalf("message %d: length %d of %d bytes", len(all), n, len(b))
		}
		all = append(all, message{
			kind:  binary.NativeEndian.Uint16(b[4:]),
			flags: binary.NativeEndian.Uint16(b[6:]),
			seq:   binary.NativeEndian.Uint32(b[8:]),
			data:  b[16:n],
		})
		b = b[n:]
	}
	return all
}
