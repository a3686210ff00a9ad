package nfnl

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Nothing that arrives makes a reader panic or go on forever, and what it takes it takes in order.
func FuzzDatagram(f *testing.F) {
	f.Add(appendRequest(nil, unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS, 1, make([]byte, 40)))
	f.Add(appendRequest(nil, unix.NLMSG_DONE, 0, 1, []byte{0xff, 0xff, 0xff, 0xff}))
	f.Add(appendRequest(appendRequest(nil, 0xa0c, 0, 1, make([]byte, 8)), 0xa0c, 0, 1, make([]byte, 5)))
	f.Fuzz(func(t *testing.T, b []byte) {
		taken := 0
		for rest := b; len(rest) > 0; {
			m, next, ok := cut(rest)
			if !ok {
				break
			}
			if len(next) >= len(rest) || headerLen+len(m.data) > len(rest)-len(next) {
				t.Fatalf("a message of %d bytes from %d leaves %d", headerLen+len(m.data), len(rest), len(next))
			}
			taken++
			rest = next
			_, _ = refusal(m)
		}
		handed := 0
		a := answer{each: func(uint16, []byte) error { handed++; return nil }}
		if err := a.take(b); handed > taken {
			t.Errorf("%d messages handed over of %d; error %v", handed, taken, err)
		}
	})
}

// A frame lies within its batch, and begins and ends with messages.
func FuzzFrame(f *testing.F) {
	begin := appendRequest(nil, unix.NFNL_MSG_BATCH_BEGIN, 0, 0, make([]byte, 4))
	one := appendRequest(begin, 0xa0c, 0, 1, make([]byte, 8))
	f.Add(appendRequest(one, unix.NFNL_MSG_BATCH_END, 0, 2, make([]byte, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := frameOf(b)
		if err != nil {
			return
		}
		if fr.last < 0 || fr.last >= fr.end {
			t.Fatalf("frame %+v", fr)
		}
		if m, rest, ok := cut(b[fr.end:]); !ok || len(rest) > 0 || m.kind != unix.NFNL_MSG_BATCH_END {
			t.Errorf("no batch end at %d", fr.end)
		}
		if m, rest, ok := cut(b[fr.last:]); !ok || len(rest) != len(b)-fr.end || (m.kind == unix.NFNL_MSG_BATCH_BEGIN) != (fr.last == 0) {
			t.Errorf("no last message at %d", fr.last)
		}
	})
}

func TestErrorText(t *testing.T) {
	gone := &Error{Seq: 3, Offset: 40, Errno: unix.ENOENT}
	for want, err := range map[string]error{
		"message 3, byte 40: no such file or directory":              gone,
		"message 0: operation not permitted: no user may":            &Error{Errno: unix.EPERM, Message: "no user may"},
		"message 3, byte 40: no such file or directory (and 1 more)": Errors{gone, {Seq: 4, Errno: unix.EEXIST}},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !errors.Is(Errors{gone, {Seq: 4, Errno: unix.EEXIST}}, unix.EEXIST) {
		t.Error("errors.Is does not find the numbers")
	}
}
