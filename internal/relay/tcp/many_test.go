package tcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"sluice/internal/relay/tcp"
	"sluice/internal/testkit/nstest"
)

// farEndEnv makes the test binary the other process of TestManyOpenConnections: the clients and the endpoint, whose memory
// and files are not to be counted.
const farEndEnv = "SLUICE_RELAY_FAR_END"

// Each connection is allowed so much. What it takes is printed: about 6 KiB of memory of the process, two files and two
// goroutines.
const (
	bytesPerConnection = 24 << 10
	spareFiles         = 500
	filesBeside        = 200
	goroutinesBeside   = 50
)

// Open connections cost little each, and nothing that is bounded runs out. Half of them have moved bytes before.
func TestManyOpenConnections(t *testing.T) {
	nstest.Require(t)
	many := within(t, 10_000) // without CAP_SYS_RESOURCE the hard limit of open files stays, which may be 20,000
	to, talk := startFarEnd(t)
	r := newRig(t, tcp.Config{Connections: 2 * many}, to)
	before := measure(t)
	fmt.Fprintln(talk, r.addr, many)
	receive(t, talk, "open\n")
	now := measure(t)
	if open := int(r.Counts().Open); open != many {
		t.Errorf("%d are open, want %d", open, many)
	}
	used := now.minus(before)
	t.Logf("%d open connections: each %d bytes of heap, %d of stacks, %d of the process (resident); %d files, %d goroutines in all",
		many, used.heap/many, used.stack/many, used.resident/many, used.files, used.goroutines)
	if used.heap+used.stack > many*bytesPerConnection {
		t.Errorf("a connection takes %d bytes", (used.heap+used.stack)/many)
	}
	if used.files > 2*many+filesBeside || used.goroutines > 2*many+goroutinesBeside {
		t.Errorf("%d files and %d goroutines for %d connections", used.files, used.goroutines, many)
	}
}

// usage is what the process takes.
type usage struct{ heap, stack, resident, files, goroutines int }

func (u usage) minus(o usage) usage {
	return usage{u.heap - o.heap, u.stack - o.stack, u.resident - o.resident, u.files - o.files, u.goroutines - o.goroutines}
}

func measure(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	runtime.GC() // what the first has only put aside
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	_, _ = fmt.Sscan(string(statm), &size, &resident)
	return usage{int(m.HeapAlloc), int(m.StackInuse), resident * os.Getpagesize(), len(files), runtime.NumGoroutine()}
}

// within is n, or as many connections as this process may have files for, after it has tried to be allowed more.
func within(t *testing.T, n int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	need := uint64(2*n + spareFiles)
	if limit.Cur >= need || syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: need, Max: max(need, limit.Max)}) == nil {
		return n
	}
	return int(limit.Cur-spareFiles) / 2
}

// startFarEnd starts the other process, and returns the endpoint and the way to speak with it.
func startFarEnd(t *testing.T) (endpoint netip.AddrPort, talk io.ReadWriter) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self) // it ends with its input
	cmd.Env = append(os.Environ(), farEndEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the far end: %v", err)
		}
	})
	var at string
	if _, err := fmt.Fscanln(out, &at); err != nil {
		t.Fatal(err)
	}
	return addrPort(t, at), struct {
		io.Reader
		io.Writer
	}{out, in}
}

// farEnd is the other process. It says where its endpoint is, is told where clients are to go and how many, says when all
// are open, and keeps them until its input ends.
func farEnd() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	var addr string
	var many int
	if _, err := fmt.Scanln(&addr, &many); err != nil {
		return err
	}
	held := make([]net.Conn, 0, 2*many)
	for i := range many {
		client, server, err := open(l, addr, i%2 == 0)
		if err != nil {
			return err
		}
		held = append(held, client, server)
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
	return err
}

// open makes one connection through the relay, and moves bytes both ways if it is to.
func open(l net.Listener, addr string, speak bool) (client, server net.Conn, err error) {
	if client, err = net.Dial("tcp", addr); err != nil {
		return nil, nil, err
	}
	if server, err = l.Accept(); err != nil || !speak {
		return client, server, err
	}
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		if _, err := way[0].Write(make([]byte, 1000)); err != nil {
			return nil, nil, err
		}
		if _, err := io.ReadFull(way[1], make([]byte, 1000)); err != nil {
			return nil, nil, err
		}
	}
	return client, server, nil
}
