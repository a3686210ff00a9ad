package bench_test

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"sluice/internal/lab"
)

// line is a way to connect.
type line struct {
	client *lab.Host
	from   netip.Addr
	to     netip.AddrPort
}

// Inside one machine an answer is there when connect(2) returns. Who waits for a Service to come does not wait for the
// answer that a packet of before will not get; who waits for one to go has to be sure that there is none.
const (
	brief = time.Millisecond
	sure  = 20 * time.Millisecond
)

// The pause between two connections is a share of the time since the first, and so is the error of what they find.
const (
	shortest = 100 * time.Microsecond
	longest  = 10 * time.Millisecond
	share    = 200
)

// limit is how long a connection is waited for.
const limit = 3 * time.Minute

// until connects over and over until an endpoint that is wanted answers, and returns when it did; for the zero address,
// until nobody answers, and when that connection began. begun is closed after the first one, which is to find neither.
func (l line) until(wanted netip.Addr, begun chan<- struct{}) (at time.Time, err error) {
	err = l.client.Do(func() error {
		_, already := l.finds(wanted)
		close(begun)
		if already {
			return fmt.Errorf("%s leads to %v before anything has changed", l.to, wanted)
		}
		for start := time.Now(); time.Since(start) < limit; {
			var found bool
			if at, found = l.finds(wanted); found {
				return nil
			}
			time.Sleep(min(longest, max(shortest, time.Since(start)/share)))
		}
		return fmt.Errorf("%s does not lead to %v after %s", l.to, wanted, limit)
	})
	return at, err
}

// finds connects once, and tells whether and since when it finds what is wanted.
func (l line) finds(wanted netip.Addr) (at time.Time, found bool) {
	began := time.Now()
	if l.connect(brief) != wanted {
		return began, false
	}
	if wanted.IsValid() {
		return time.Now(), true
	}
	return began, !l.connect(sure).IsValid()
}

// connect returns who answers; the zero address if nobody does. The calling thread is the client's.
func (l line) connect(patience time.Duration) netip.Addr {
	dialer := net.Dialer{Timeout: patience}
	if l.from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.from, 0))
	}
	c, err := dialer.Dial("tcp4", l.to.String())
	if err != nil {
		return netip.Addr{}
	}
	defer func() {
		_ = c.(*net.TCPConn).SetLinger(0) // neither end has to remember it
		_ = c.Close()
	}()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	greeting, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return netip.Addr{}
	}
	endpoint, _, _ := strings.Cut(greeting, " ") // lab.Server says who it is
	at, err := netip.ParseAddrPort(endpoint)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}
