package lab_test

import (
	"net/netip"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/testkit/nstest"
)

func BenchmarkUp(b *testing.B) {
	nstest.Require(b)
	for b.Loop() {
		l, err := lab.Up(lab.Reference())
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDial(b *testing.B) {
	nstest.Require(b)
	l, err := lab.Up(lab.Reference())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		if _, err := l.Host("pods-a").ServeAll(p, 8080); err != nil {
			b.Fatal(err)
		}
		b.Run(p.String(), func(b *testing.B) {
			d := lab.Dial{To: netip.MustParseAddrPort("10.244.1.82:8080"), Protocol: p}
			for b.Loop() {
				if _, err := l.Host("clients").Dial(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
