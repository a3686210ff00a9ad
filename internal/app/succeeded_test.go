package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/config"
	"sluice/internal/kernel/instance"
)

// visit is a client that wants a word of the endpoint.
func visit(at string) error {
	conn, err := net.DialTimeout("tcp", at, 20*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // all was said
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return hear(conn)
}

func hear(conn net.Conn) error {
	var word [2]byte
	if _, err := io.ReadFull(conn, word[:]); err != nil || string(word[:]) != "hi" {
		return fmt.Errorf("heard %q: %w", word, err)
	}
	return nil
}

// greet says a word to whoever comes, and for each byte that they send.
func greet(t *testing.T, at string) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for err := error(nil); err == nil; {
					if _, err = io.WriteString(conn, "hi"); err == nil {
						_, err = conn.Read(make([]byte, 1))
					}
				}
			}()
		}
	}()
}

// successor is as much of a daemon as takes another one's place. What it did first ends last.
type successor struct {
	before *predecessor
	claim  *instance.Claim
}

// die is what the kernel does for a process that is killed.
func (s successor) die() error {
	err := s.before.leave()
	if s.claim != nil {
		time.Sleep(50 * time.Millisecond) // the kernel may take its time with the rest
		err = errors.Join(err, s.claim.Close())
	}
	return err
}

// Whenever a daemon dies that is to take the place of this one, this one goes on: no client is refused, and what is open goes
// on.
func TestSuccessorDies(t *testing.T) {
	const web = "192.168.10.11:30080"
	n := newNodeOf(t, config.ModeUserspace)
	greet(t, "192.168.10.11:8080")
	service := strings.ReplaceAll(udp("web", "10.96.0.10", 80, 30080, "192.168.10.11:8080"), "UDP", "TCP")
	n.put(service)
	n.start()
	n.eventually("clients are served", func() bool { return visit(web) == nil })
	stays, err := net.Dial("tcp", web)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stays.Close() }()
	stop := keepVisiting(t, web)

	for i, step := range []struct {
		name string
		do   func(*successor) error
	}{
		{"the place is free", func(*successor) error { return nil }},
		{"it has the place", (*successor).takePlace},
		{"it has the sockets", func(s *successor) error {
			sockets, err := s.before.sockets(redirected)
			return errors.Join(err, s.takePlace(), closeSockets(sockets))
		}},
		{"it has asked for the sockets", func(s *successor) error {
			_, err := s.before.conn.Write([]byte{byte(redirected)})
			return err
		}},
	} {
		var next successor
		if next.before, err = succeed(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err := errors.Join(step.do(&next), next.die()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		n.eventually("it goes on after "+step.name, func() bool {
			_, err := askDaemon()
			return err == nil && strings.Count(n.said(), "has died; this one goes on") == i+1
		})
		n.eventually("the connection is there", func() bool { return speak(stays) == nil })
		n.put(service, udp(fmt.Sprint("dns", i), fmt.Sprint("10.96.0.1", i), 53, 0, "10.244.2.5:53"))
		n.eventually("changes are followed", n.asPlanned)
	}
	stop()
	n.stop()
}

func (s *successor) takePlace() (err error) {
	s.claim, err = instance.Take()
	return err
}

// speak has the endpoint say another word.
func speak(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write([]byte{'?'}); err != nil {
		return err
	}
	return hear(conn)
}

// keepVisiting is a client after the other, until it is told to stop. Each has to be served.
func keepVisiting(t *testing.T, at string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := visit(at); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a client: %v", err)
		}
	}
}
