package datagram_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/datagram"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// pair makes two connected sockets.
func pair(t *testing.T) (a, b *net.UDPConn) {
	t.Helper()
	nstest.Require(t)
	unbound, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := unbound.LocalAddr().(*net.UDPAddr)
	a, err = net.DialUDP("udp4", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	unbound.Close()
	b, err = net.DialUDP("udp4", at, a.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func raw(t *testing.T, c *net.UDPConn) syscall.RawConn {
	t.Helper()
	r, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// receive is Receive as one value.
func receive(t *testing.T, c *net.UDPConn, pool *datagram.Buffers) []byte {
	t.Helper()
	b, n, err := datagram.Receive(raw(t, c), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Give(b)
	return bytes.Clone(b[:n])
}

func TestReceiveWhatWasSent(t *testing.T) {
	a, b := pair(t)
	pool := datagram.NewBuffers(1)
	for _, size := range []int{0, 1, 65507} {
		want := bytes.Repeat([]byte{7}, size)
		if err := datagram.Send(raw(t, a), want); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, b, pool); !bytes.Equal(got, want) {
			t.Errorf("received %d bytes, or others, of %d", len(got), size)
		}
	}
}

// One that came before somebody waited, and one that comes after.
func TestWait(t *testing.T) {
	a, b := pair(t)
	pool := datagram.NewBuffers(1)
	for _, late := range []bool{false, true} {
		send := func() {
			if err := datagram.Send(raw(t, a), []byte("x")); err != nil {
				t.Error(err)
			}
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			if late {
				time.Sleep(10 * time.Millisecond)
			}
			send()
		}()
		if !late {
			<-sent
		}
		for range 2 { // the datagram stays
			if err := datagram.Wait(raw(t, b)); err != nil {
				t.Fatal(err)
			}
		}
		if got := receive(t, b, pool); string(got) != "x" {
			t.Errorf("received %q after waiting, want x", got)
		}
		<-sent
	}
}

// Who waits to receive has no buffer: one is enough for any number of them.
func TestWaitingHoldsNoBuffer(t *testing.T) {
	_, silent := pair(t)
	a, b := pair(t)
	pool := datagram.NewBuffers(1)
	ended := make(chan error, 1)
	go func() {
		_, _, err := datagram.Receive(raw(t, silent), pool)
		ended <- err
	}()
	for range 100 {
		if err := datagram.Send(raw(t, a), []byte("x")); err != nil {
			t.Fatal(err)
		}
		receive(t, b, pool)
	}
	silent.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed socket ends waiting with %v, want %v", err, net.ErrClosed)
	}
}

func TestRefusalIsTold(t *testing.T) {
	a, b := pair(t)
	b.Close()
	for _, told := range []func() error{
		func() error { return datagram.Wait(raw(t, a)) },
		func() error {
			b, _, err := datagram.Receive(raw(t, a), datagram.NewBuffers(1))
			if b == nil {
				t.Error("no buffer to give back")
			}
			return err
		},
		func() error { return datagram.Send(raw(t, a), []byte("x")) },
	} {
		if err := datagram.Send(raw(t, a), []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := told(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the error is %v, want %v", err, syscall.ECONNREFUSED)
		}
	}
}

func TestDeadlineEndsWaiting(t *testing.T) {
	a, _ := pair(t)
	_ = a.SetReadDeadline(time.Unix(1, 0))
	if err := datagram.Wait(raw(t, a)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ended with %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// An ordinary user gets what net.core.rmem_max allows.
func TestRoom(t *testing.T) {
	a, _ := pair(t)
	if err := datagram.Room(raw(t, a), 1<<20); err != nil {
		t.Fatal(err)
	}
	var size int
	_ = raw(t, a).Control(func(fd uintptr) { size, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF) })
	if size < 200_000 {
		t.Errorf("there is room for %d bytes", size)
	}
}
