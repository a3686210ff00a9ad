package bench

import (
	"fmt"
	"net"

	"sluice/internal/testkit/crowd"
)

// echo has the server send back what it gets, over TCP and UDP, until the benchmark ends.
func (w *way) echo() {
	w.Helper()
	var l net.Listener
	var d net.PacketConn
	at := fmt.Sprintf(":%d", crowd.TargetPort)
	err := w.lab.Host("server").Do(func() (err error) {
		if l, err = net.Listen("tcp4", at); err != nil {
			return err
		}
		d, err = net.ListenPacket("udp4", at)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _, _ = l.Close(), d.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go echoAll(c)
		}
	}()
	go func() {
		var buf [len(message)]byte
		for n, from, err := d.ReadFrom(buf[:]); err == nil; n, from, err = d.ReadFrom(buf[:]) {
			_, _ = d.WriteTo(buf[:n], from) // the client misses it
		}
	}()
}

// echoAll sends back what comes in pieces of one message, without a pipe that io.Copy would hold.
func echoAll(c net.Conn) {
	defer func() { _ = c.Close() }()
	var buf [len(message)]byte
	for {
		n, err := c.Read(buf[:])
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
