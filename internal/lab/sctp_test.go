package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSCTPPacketsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		init := newInit(rapid.Uint16().Draw(t, "source"), rapid.Uint16().Draw(t, "destination"))
		ack := init.ack(rapid.String().Draw(t, "cookie"))
		if init.src == 0 {
			t.Fatal("no source port")
		}
		for _, want := range []sctpPacket{init, ack} {
			got, ok := parseSCTP(want.bytes())
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(sctpPacket{})); !ok || diff != "" {
				t.Fatalf("ok %v, -wrote +read:\n%s", ok, diff)
			}
		}
	})
}

func FuzzParseSCTP(f *testing.F) {
	f.Add([]byte{})
	f.Add(newInit(4000, 80).bytes())
	f.Add(newInit(4000, 80).ack("10.0.0.1:80 saw 10.0.0.2:4000").bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parseSCTP(b)
		if again, ok2 := parseSCTP(p.bytes()); ok && (!ok2 || again.cookie != p.cookie) {
			t.Errorf("%+v reads back as %+v", p, again)
		}
	})
}
