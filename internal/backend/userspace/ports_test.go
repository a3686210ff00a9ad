package userspace

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

func listOf(name string, protocol model.Protocol) relay.Key {
	return relay.Key{
		Port: plan.PortID{Service: model.Name{Namespace: "default", Name: name}, Protocol: protocol}, List: plan.ListCluster,
	}
}

func nothing(socket) bool { return false }

func everything(relay.Key) bool { return false } // none is to be kept

func take(t interface{ Fatal(...any) }, p *ports, k relay.Key) uint16 {
	number, err := p.take(k)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// A list has the same port in every process, unless another one has it.
func TestPortsAreTheSameAgain(t *testing.T) {
	k := listOf("web", model.TCP)
	number := take(t, newPorts(DefaultOptions(), nothing), k)
	p := newPorts(DefaultOptions(), nothing)
	for i := range 100 {
		take(t, p, listOf(fmt.Sprint("other-", i), model.TCP))
	}
	if got := take(t, p, k); got != number {
		t.Errorf("port %d, want %d as before", got, number)
	}
	if local := (relay.Key{Port: k.Port, List: plan.ListLocal}); take(t, p, local) == number {
		t.Error("both lists of a Service port have one port")
	}
}

func TestPortsAvoidOthers(t *testing.T) {
	k := listOf("web", model.TCP)
	first := take(t, newPorts(DefaultOptions(), nothing), k)

	p := newPorts(DefaultOptions(), func(s socket) bool { return s.number == first })
	if got := take(t, p, k); got != first+1 {
		t.Errorf("reserved: port %d, want the next after %d", got, first)
	}
	p = newPorts(DefaultOptions(), nothing)
	take(t, p, k)
	p.occupied(k)
	if got := take(t, p, k); got != first+1 {
		t.Errorf("occupied: port %d, want the next after %d", got, first)
	}
	if got := take(t, p, listOf("web", model.UDP)); got != first {
		t.Errorf("UDP: port %d, want %d, which is TCP's alone", got, first)
	}
}

// What was given up is nobody else's until it is closed, but its own again at once.
func TestPortsRestBeforeTheyChangeHands(t *testing.T) {
	p := newPorts(Options{Ports: PortRange{10000, 10000}}, nothing)
	a, b := listOf("a", model.TCP), listOf("b", model.TCP)
	take(t, p, a)
	p.release(a)
	if got, err := p.take(b); !errors.Is(err, ErrNoPort) {
		t.Fatalf("another list: %d, %v; want that none is left", got, err)
	}
	take(t, p, a)
	p.release(a)
	p.settle(func(k relay.Key) bool { return k == a })
	if _, err := p.take(b); !errors.Is(err, ErrNoPort) {
		t.Errorf("while rules may lead there: %v, want that none is left", err)
	}
	p.settle(everything)
	take(t, p, b)
}

func TestPortsOfTheProcessBefore(t *testing.T) {
	a, b := listOf("a", model.TCP), listOf("b", model.TCP)
	free := newPorts(DefaultOptions(), nothing)
	opts := DefaultOptions()
	opts.Before = map[relay.Key]uint16{a: take(t, free, b), b: 9} // 9 is not in the range any more
	p := newPorts(opts, nothing)
	if got := take(t, p, b); got == opts.Before[a] || got == 9 {
		t.Errorf("b has port %d", got)
	}
	if got := take(t, p, a); got != opts.Before[a] {
		t.Errorf("a has port %d, want %d as before", got, opts.Before[a])
	}
}

// Whatever happens, no socket is two lists', none is reserved or out of the range, and who has one keeps it.
func TestPortsNeverCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reserved := map[socket]bool{}
		p := newPorts(Options{Ports: PortRange{10000, 10007}}, func(s socket) bool { return reserved[s] })
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := listOf(rapid.StringMatching("[a-f]").Draw(t, "list"), rapid.SampledFrom([]model.Protocol{model.TCP, model.UDP}).Draw(t, "protocol"))
			switch before, had := p.of[k], p.of[k] != 0; rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				p.release(k)
			case 2:
				p.occupied(k)
			case 3:
				p.settle(everything)
			case 4:
				s := socketOf(k, uint16(rapid.IntRange(10000, 10007).Draw(t, "reserved")))
				reserved[s] = !reserved[s]
			default:
				number, err := p.take(k)
				if err == nil && reserved[socketOf(k, number)] {
					t.Fatalf("%s has port %d, which is reserved", k, number)
				}
				if had && number != before && !reserved[socketOf(k, before)] {
					t.Fatalf("%s has port %d, had %d", k, number, before)
				}
			}
			owners := map[socket]relay.Key{}
			for k, number := range p.of {
				s := socketOf(k, number)
				if other, two := owners[s]; two {
					t.Fatalf("%s and %s have port %d", k, other, number)
				}
				if owners[s] = k; !p.in.contains(number) || p.owner[s] != k {
					t.Fatalf("%s has port %d, which is %s's", k, number, p.owner[s])
				}
			}
		}
	})
}
