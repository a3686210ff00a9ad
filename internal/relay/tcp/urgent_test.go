package tcp_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/kernel/splice"
	"sluice/internal/relay/tcp"
)

// control calls f with the descriptor of c.
func control(t testing.TB, c *net.TCPConn, f func(fd int)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sendUrgent sends text whose last byte is urgent.
func sendUrgent(t testing.TB, c *net.TCPConn, text string) {
	t.Helper()
	if err := writeUrgent(c, text); err != nil {
		t.Fatal(err)
	}
}

func writeUrgent(c *net.TCPConn, text string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = syscall.Sendto(int(fd), []byte(text), syscall.MSG_OOB, nil)
		return !errors.Is(sent, syscall.EAGAIN)
	})
	return errors.Join(err, sent)
}

// receiveUrgent waits for an urgent byte, of a socket that keeps it apart from the others.
func receiveUrgent(t testing.TB, c *net.TCPConn, want byte) {
	t.Helper()
	var b [1]byte
	until(t, "there is an urgent byte", func() (ok bool) {
		control(t, c, func(fd int) {
			n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_OOB)
			ok = n == 1 && err == nil
		})
		return ok
	})
	if b[0] != want {
		t.Fatalf("urgent: %q, want %q", b[0], want)
	}
}

func atMark(t testing.TB, c *net.TCPConn) (is bool) {
	t.Helper()
	control(t, c, func(fd int) { is = splice.AtMark(uintptr(fd)) })
	return is
}

// inPlace has c get urgent bytes among the others.
func inPlace(t testing.TB, c *net.TCPConn) {
	t.Helper()
	control(t, c, func(fd int) {
		if err := splice.KeepUrgent(uintptr(fd)); err != nil {
			t.Fatal(err)
		}
	})
}

// receiveMarked receives bytes inPlace, and has a ! before each that is urgent.
func receiveMarked(t testing.TB, c *net.TCPConn, want string) {
	t.Helper()
	var got strings.Builder
	for b := make([]byte, 1); got.Len() < len(want); got.Write(b) {
		if peekMarked(t, c, b) {
			got.WriteByte('!')
		}
		if _, err := c.Read(b); err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
	}
	if got.String() != want {
		t.Fatalf("received %q, want %q", got.String(), want)
	}
}

// peekMarked waits until the next byte is there, and reports whether it is urgent.
func peekMarked(t testing.TB, c *net.TCPConn, b []byte) (marked bool) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			_, err := splice.Peek(fd, b)
			marked = splice.AtMark(fd)
			return !errors.Is(err, syscall.EAGAIN)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return marked
}

// bothWays has f send from either side of a connection through a relay to the other.
func bothWays(t *testing.T, f func(t *testing.T, from, to *net.TCPConn)) {
	for _, way := range []string{"in", "out"} {
		t.Run(way, func(t *testing.T) {
			eachMode(t, func(t *testing.T, c tcp.Config) {
				at, conns := handed(t)
				client := newRig(t, c, at).dial(t)
				server := <-conns
				if way == "out" {
					client, server = server, client
				}
				f(t, client, server)
			})
		})
	}
}

// A receiver that does not ask for urgent bytes in their place gets them apart, and knows where they were.
func TestUrgentByteIsPassedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to *net.TCPConn) {
		sendUrgent(t, from, "beforeU")
		receiveUrgent(t, to, 'U') // with nothing behind it
		receive(t, to, "before")
		if !atMark(t, to) {
			t.Error("the mark is not behind what was before the urgent byte")
		}
		send(t, from, "behind")
		receive(t, to, "behind")
		sendUrgent(t, from, "V") // when all has been quiet
		receiveUrgent(t, to, 'V')
		sendUrgent(t, from, "W")
		receiveUrgent(t, to, 'W')
		send(t, from, "end")
		_ = from.CloseWrite()
		receiveAll(t, to, "end")
	})
}

// The first byte ever, the last one, and all that there are. What is between spaces is sent at once, what is between lines
// when all before it has arrived: the kernel knows of one urgent byte at a time.
func TestUrgentByteInItsPlace(t *testing.T) {
	for _, rounds := range []string{"!U", "!U def", "abc!U", "abc!U def", "!U|!V|!W", "abc!U|def!V ghi|!W"} {
		t.Run(rounds, func(t *testing.T) {
			bothWays(t, func(t *testing.T, from, to *net.TCPConn) {
				inPlace(t, to)
				all := strings.Split(rounds, "|")
				for i, round := range all {
					for part := range strings.FieldsSeq(round) {
						sendMarked(t, from, part)
					}
					if i == len(all)-1 {
						_ = from.CloseWrite()
					}
					receiveMarked(t, to, strings.ReplaceAll(round, " ", ""))
				}
				receiveAll(t, to, "")
			})
		})
	}
}

// sendMarked sends a text whose last byte is urgent if a ! is before it.
func sendMarked(t testing.TB, c *net.TCPConn, text string) {
	t.Helper()
	if before, last, urgent := strings.Cut(text, "!"); urgent {
		sendUrgent(t, c, before+last)
	} else {
		send(t, c, text)
	}
}

// A reset after an urgent byte: all that came before it is delivered.
func TestUrgentByteThenReset(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to *net.TCPConn) {
		inPlace(t, to)
		sendUrgent(t, from, "abcU")
		receiveMarked(t, to, "abc!U")
		sendUrgent(t, from, "V")
		_ = from.SetLinger(0)
		_ = from.Close()
		wantReset(t, to)
	})
}

// While a receiver does not read, urgent bytes wait with the others.
func TestUrgentByteBehindMuch(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to *net.TCPConn) {
		inPlace(t, to)
		much := strings.Repeat("x", 8<<20)
		wrote := make(chan error, 1)
		go func() {
			_, err := from.Write([]byte(much))
			wrote <- errors.Join(err, writeUrgent(from, "U"))
		}()
		receive(t, to, much)
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		receiveMarked(t, to, "!U")
	})
}

// The mark is behind the header of the PROXY protocol, which the client knows nothing of.
func TestUrgentByteBehindHeader(t *testing.T) {
	at, conns := handed(t)
	r := newRig(t, tcp.Config{}, at)
	r.Change(tcp.Service{Name: "a/b", Picker: r.picker, ProxyProtocol: 1})
	client := r.dial(t)
	sendUrgent(t, client, "U")
	server := <-conns
	inPlace(t, server)
	_, port, _ := net.SplitHostPort(client.LocalAddr().String())
	_, to, _ := net.SplitHostPort(r.addr)
	receiveMarked(t, server, "PROXY TCP4 127.0.0.1 127.0.0.1 "+port+" "+to+"\r\n!U")
}
