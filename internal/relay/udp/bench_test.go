package udp

import (
	"fmt"
	"net/netip"
	"testing"
)

// What a question and its answer take, beside asking the endpoint itself.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{64, 1400, 16_000} {
		payload := make([]byte, size)
		for _, way := range []string{"direct", "relayed"} {
			b.Run(fmt.Sprintf("%s/%d", way, size), func(b *testing.B) {
				to := serve(b, "", "127.0.0.1").addr()
				if way == "relayed" {
					to = listen(b, newEngine(b, Config{}), "127.0.0.1", to).Addr()
				}
				client := dial(b, to)
				ask(b, client, payload)
				answer := make([]byte, 1<<16)
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := client.Write(payload); err != nil {
						b.Fatal(err)
					}
					if _, err := client.Read(answer); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// What a new client takes: a session, its socket, and the end of another one.
func BenchmarkSession(b *testing.B) {
	e := newEngine(b, Config{Sessions: 256, PerClient: 256})
	l := listen(b, e, "0.0.0.0", serve(b, "a", "127.0.0.1").addr())
	client := bind(b, "127.0.0.1")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		exchange(b, client, l, i%50_000)
		i++
	}
}

// What a client takes that was not redirected.
func BenchmarkDirectClient(b *testing.B) {
	e := newEngine(b, Config{})
	l := listenFor(b, e, Target{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), Picker: picker(e),
		Original: func(_, _ netip.AddrPort) (netip.AddrPort, bool) { return netip.AddrPort{}, false },
	})
	client := dial(b, l.Addr())
	for b.Loop() {
		n := l.Stats().Ended[NotOpened]
		if _, err := client.Write([]byte("?")); err != nil {
			b.Fatal(err)
		}
		for l.Stats().Ended[NotOpened] == n {
		}
	}
}
