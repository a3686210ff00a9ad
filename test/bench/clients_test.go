package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"

	"sluice/internal/kernel/netns"
)

// asClients in the environment makes the test program be clients that keep what they have opened: a process of their
// own, for all of it would be more files than one may have open. It has the network, tcp or udp.
const asClients = "SLUICE_BENCH_CLIENTS"

// crew is that process. Each line that it is told is answered by one.
type crew struct {
	way *way
	cmd *netns.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newCrew(w *way, network string) *crew {
	w.Helper()
	cmd := w.lab.Host("client").Command(w.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), asClients+"="+network)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return &crew{w, cmd, in, bufio.NewReader(out)}
}

// replies are how many connections had a message sent there and back, how many were refused, and how many were neither
// in a long time.
type replies struct{ served, refused, silent int }

// open asks for n more connections, by so many Services from the first on. Those that are served stay open.
func (c *crew) open(n, first, services int) replies {
	c.way.Helper()
	return c.tell(fmt.Sprintf("open %d %d %d", n, first, services))
}

// talk has a message go there and back by all that are open.
func (c *crew) talk() replies {
	c.way.Helper()
	return c.tell("talk 0 0 0")
}

func (c *crew) tell(line string) (r replies) {
	c.way.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.way.Fatal(err)
	}
	if _, err := fmt.Fscanln(c.out, &r.served, &r.refused, &r.silent); err != nil {
		c.way.Fatal("the clients do not answer: ", err)
	}
	if r.silent > 0 {
		c.way.Errorf("%d clients were neither served nor refused", r.silent)
	}
	return r
}

// leave closes all that is open.
func (c *crew) leave() {
	c.way.Helper()
	_ = c.in.Close() // it ends then
	if err := c.cmd.Wait(); err != nil {
		c.way.Error("the clients: ", err)
	}
}

// beClients is that process.
func beClients(network string) error {
	var open []net.Conn
	for {
		var what string
		var n, first, services int
		if _, err := fmt.Scanln(&what, &n, &first, &services); err != nil {
			return nil // there is nothing more to do
		}
		if what == "talk" {
			_, r := talkAll(len(open), func(i int) (net.Conn, error) { return open[i], nil })
			fmt.Println(r.served, r.refused, r.silent)
			continue
		}
		served, r := talkAll(n, func(i int) (net.Conn, error) { return dial(network, i, first+i%services) })
		open = append(open, served...)
		fmt.Println(r.served, r.refused, r.silent)
	}
}
