package tcp_test

import (
	"io"
	"net"
	"net/netip"
	"testing"
)

// paths are the ways to an endpoint: direct, and by the relay with and without pipes.
func paths(b *testing.B, to netip.AddrPort, f func(b *testing.B, addr string)) {
	b.Helper()
	b.Run("direct", func(b *testing.B) { f(b, to.String()) })
	for name, c := range modes {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, c, to)
			f(b, r.addr)
		})
	}
}

func connect(b *testing.B, addr string) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// One connection, as many bytes as it takes, in one direction.
func BenchmarkThroughput(b *testing.B) {
	to := endpoint(b, func(c *net.TCPConn) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				break
			}
		}
		_, _ = c.Write([]byte{1})
	})
	paths(b, to, func(b *testing.B, addr string) {
		b.Helper()
		c := connect(b, addr).(*net.TCPConn)
		defer c.Close()
		chunk := make([]byte, 256<<10)
		b.SetBytes(int64(len(chunk)))
		for b.Loop() {
			if _, err := c.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		_ = c.CloseWrite()
		_, _ = io.ReadFull(c, make([]byte, 1)) // all has arrived
	})
}

// One request and its answer, of a few bytes, over an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	paths(b, endpoint(b, echo), func(b *testing.B, addr string) {
		b.Helper()
		c := connect(b, addr)
		defer c.Close()
		buf := make([]byte, 100)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = c.Write(buf)
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Connections that each ask one question, four clients at a time. Clients leave with a reset, so that ports do not run out.
func BenchmarkConnections(b *testing.B) {
	paths(b, endpoint(b, echo), func(b *testing.B, addr string) {
		b.Helper()
		b.SetParallelism(2)
		b.RunParallel(func(pb *testing.PB) {
			buf := make([]byte, 1)
			for pb.Next() {
				c := connect(b, addr).(*net.TCPConn)
				_, _ = c.Write(buf)
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Error(err)
				}
				_ = c.SetLinger(0)
				_ = c.Close()
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "connections/s")
	})
}
