package tcp_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/sysctl"
	"sluice/internal/relay/count"
	"sluice/internal/relay/tcp"
)

// An endpoint that refuses is passed over for the next, and from then on for a while without an attempt.
func TestRefusingEndpointIsPassedOver(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{}, refusing(t), endpoint(t, echo))
	for range 10 {
		client := r.dial(t)
		send(t, client, "x")
		receive(t, client, "x")
	}
	n := r.Counts()
	if n.DialFailures != 1 || n.Refused != [count.Reasons]uint64{} {
		t.Errorf("%d failures, refused %v; want one failure, none refused", n.DialFailures, n.Refused)
	}
}

// soon is how long an endpoint is tried that will not answer. One that does must never take as long, however busy the
// machine.
const soon = time.Second

// silent is an address that takes no connection and says so to nobody: its queue of connections is full.
func silent(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sa.(*syscall.SockaddrInet4).Port))
	for {
		c, err := net.DialTimeout("tcp", addr.String(), soon)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

func TestSilentEndpointIsPassedOver(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{DialTimeout: soon}, silent(t), endpoint(t, echo))
	for range 5 {
		client := r.dial(t)
		send(t, client, "x")
		receive(t, client, "x")
	}
	if n := r.Counts().DialFailures; n != 1 {
		t.Errorf("%d attempts failed, want 1", n)
	}
}

// All attempts together have an end too, and with it the client.
func TestAttemptsTogetherAreBounded(t *testing.T) {
	noLeak(t)
	at := silent(t)
	r := newRig(t, tcp.Config{DialTimeout: time.Hour, DialTotal: 200 * time.Millisecond}, at)
	r.wantRefused(t)
	r.set(at, netip.MustParseAddrPort("127.0.0.1:1"))
	until(t, "it was counted", func() bool { return r.Counts().Refused[count.Unreachable] == 1 })
}

// Who gets no endpoint must not take that for an empty answer.
func TestClientIsResetWhenNoEndpointAnswers(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{}, refusing(t), refusing(t), refusing(t))
	r.wantRefused(t)
	until(t, "it was counted", func() bool {
		n := r.Counts()
		return n.Refused[count.Unreachable] == 1 && n.DialFailures == 3 && n.Open == 0
	})
	r.set()
	r.wantRefused(t)
	until(t, "it was counted", func() bool { return r.Counts().Refused[count.NoEndpoint] == 1 })
	r.Stop()
	r.Close()
	if log := r.log.String(); !strings.Contains(log, "unreachable") || !strings.Contains(log, "connection refused") {
		t.Errorf("the log does not say why: %q", log)
	}
	if lines := strings.Count(r.log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines of log for two of a kind, want 1", lines)
	}
}

// A client that was not redirected has found the port of the proxy, which is nobody's Service.
func TestDirectConnectionsAreRefused(t *testing.T) {
	noLeak(t)
	at, conns := handed(t)
	r := newRig(t, tcp.Config{}, at)
	r.Change(tcp.Service{Name: "a/b", Picker: r.picker, Redirected: true})
	r.wantRefused(t)
	until(t, "it was counted", func() bool { return r.Counts().Refused[count.NotRedirected] == 1 })
	if len(conns) != 0 {
		t.Error("the endpoint got a connection")
	}
}

// While endpoints are asked, nothing is held up that is connected, and the end of the Relay is the end of the attempt.
func TestCloseEndsAttempts(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{DialTimeout: time.Hour, DialTotal: time.Hour}, silent(t))
	client := r.dial(t)
	until(t, "it was accepted", func() bool { return r.Counts().Open == 1 })
	r.Stop()
	r.Close()
	wantReset(t, client)
}

// A port of this machine is used once towards each endpoint, and not only once in all.
func TestPortsAreSharedBetweenEndpoints(t *testing.T) {
	noLeak(t)
	const ports = 20
	r := newRig(t, tcp.Config{}, endpoint(t, echo), endpoint(t, echo), endpoint(t, echo))
	localPorts(t, 15000, 15000+ports-1) // ports that no connection of before can have
	for i := range ports * 3 / 2 {
		client := net.Dialer{LocalAddr: &net.TCPAddr{Port: 16000 + i}, Timeout: patience} // not one of those few
		c, err := client.DialContext(t.Context(), "tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		_ = c.(*net.TCPConn).SetLinger(0) // so that the port is free at once
		send(t, c, "x")
		receive(t, c, "x")
	}
}

// localPorts says which ports the kernel chooses from, until the test ends.
func localPorts(t *testing.T, first, last int) {
	t.Helper()
	const key = "net.ipv4.ip_local_port_range"
	was, err := sysctl.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sysctl.Set(key, fmt.Sprint(first, "\t", last)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sysctl.Set(key, was) })
}
