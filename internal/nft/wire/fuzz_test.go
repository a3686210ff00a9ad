package wire_test

import (
	"testing"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// No bytes make a decoder panic, and what it decodes can be printed.
func FuzzDecode(f *testing.F) {
	for _, r := range []*ruleset{proxy(), forms()} {
		for _, m := range messages(f, r.batch()) {
			f.Add(m.data)
		}
	}
	ranges := &nft.Set{Name: "ranges", Key: []nft.Field{{Type: nft.IPv4Addr}}, Interval: true}
	key := &nft.Set{Name: "key", Key: []nft.Field{{Type: nft.IPv4Addr}, proto, port}, Data: []nft.Field{classid}}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = wire.DecodeTable(data)
		_, _ = wire.DecodeChain(data)
		_, _ = wire.DecodeRule(data)
		_, _ = wire.DecodeGeneration(data)
		if s, err := wire.DecodeSet(data); err == nil && s.Is(key) && s.Name != key.Name {
			t.Errorf("%+v is another", s)
		}
		list, err := wire.DecodeElements(data)
		if err != nil {
			return
		}
		var all []wire.Element
		for e, err := range list.All() {
			if err != nil {
				break
			}
			_ = key.ElementString(&e.Element)
			all = append(all, *e)
		}
		if joined := wire.Ranges(ranges, all); len(joined) > len(all) {
			t.Errorf("%d ranges of %d elements", len(joined), len(all))
		}
	})
}
