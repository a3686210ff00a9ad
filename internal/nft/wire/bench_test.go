package wire_test

import (
	"testing"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// benchmarks are the elements that there are most of.
func benchmarks() map[string]*ruleset {
	all := proxy()
	parts := map[string]*ruleset{}
	for _, name := range []string{"services4", "endpoints4", "endpoints6", "hairpin4", "buckets"} {
		for i := range all.sets {
			if all.sets[i].Name == name {
				parts[name] = &ruleset{sets: all.sets[i : i+1], elements: map[string][]nft.Element{name: all.elements[name][:1]}}
			}
		}
	}
	return parts
}

const perBatch = 10_000

func BenchmarkAddElement(b *testing.B) {
	for name, r := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			s, e := &r.sets[0], &r.elements[name][0]
			batch := wire.NewBatch("sluice")
			b.ReportAllocs()
			for i := range b.N {
				if i%perBatch == 0 {
					batch.Reset()
				}
				batch.AddElement(s, e)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "elements/s")
		})
	}
}

func BenchmarkDecodeElements(b *testing.B) {
	for name, r := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			s, e := &r.sets[0], &r.elements[name][0]
			batch := wire.NewBatch("sluice")
			for range 500 {
				batch.AddElement(s, e)
			}
			data := messages(b, batch.Finish())[1].data
			b.ReportAllocs()
			for n := 0; n < b.N; {
				list, err := wire.DecodeElements(data)
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range list.All() {
					if n++; err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "elements/s")
		})
	}
}

func BenchmarkAppendElement(b *testing.B) {
	for name, r := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			var text []byte
			b.ReportAllocs()
			for range b.N {
				text = r.sets[0].AppendElement(text[:0], &r.elements[name][0])
			}
		})
	}
}
