package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/crowd"
	"sluice/internal/testkit/figures"
	"sluice/internal/testkit/nstest"
)

// pathSizes are the numbers of Services through the first and last of which connections go.
var pathSizes = []int{10, 1000, 30_000}

// pathPiece is how many Services of kube-proxy's layout are loaded at once where only the outcome matters: all at once
// takes longer.
const pathPiece = 3000

// rounds and burst: each variant has a burst of connections in each round, so that what disturbs the machine disturbs
// all of them alike.
const (
	rounds = 60
	burst  = 50
)

// BenchmarkPath compares what a connection takes through the rules with one that goes to the endpoint itself, through
// the same kind of node with no rules at all.
func BenchmarkPath(b *testing.B) {
	nstest.RequireRoot(b, needsBuffers)
	for b.Loop() {
		direct := newRoute(b, "direct", crowd.Crowd{}, nil)
		direct.paths = []*path{{to: netip.AddrPortFrom(pathEndpoint(0), crowd.TargetPort)}}
		routes := []*route{direct}
		for _, n := range pathSizes {
			c := pathCrowd(n)
			routes = append(routes,
				newRoute(b, fmt.Sprintf("Sluice, %d Services", n), c, writeSluice),
				newRoute(b, fmt.Sprintf("kube-proxy's layout, %d Services", n), c, writeKubeProxy))
		}
		routes = append(routes, newRoute(b, "Sluice, 1000 Services, without counting connections", pathCrowd(1000), writeUncounted))
		interleave(b, routes)
		t := figures.Grid{Head: []string{"", "connect: first, p50 µs", "÷ direct", "last", "÷ direct", "connections/s: first", "÷ direct", "last", "÷ direct"}}
		for _, r := range routes {
			t.Add(r.row(direct)...)
			r.end(b)
		}
		publish(b, "path", t.String())
	}
}

// pathCrowd is Services of two endpoints. Those of the first and the last one answer.
func pathCrowd(n int) crowd.Crowd {
	return crowd.Crowd{Services: n, Endpoints: 2, At: func(service, endpoint int) netip.Addr {
		if service == 0 || service == n-1 {
			return pathEndpoint(endpoint)
		}
		return netip.Addr{}
	}}
}

func pathEndpoint(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, 1, byte(10 + i)}) }

// route is a client and a server on one node, and what connects them.
type route struct {
	name     string
	lab      *lab.Lab
	listener int
	paths    []*path
}

// path is where the client connects to, and how long that took.
type path struct {
	to             netip.AddrPort
	connect, whole []time.Duration
}

// newRoute builds the lab and has write fill its node.
func newRoute(b *testing.B, name string, c crowd.Crowd, write func(*testing.B, *lab.Host, crowd.Crowd)) *route {
	b.Helper()
	l, err := lab.Up(lab.Topology{
		Node: lab.Machine{Name: "node", Addresses: []netip.Addr{netip.MustParseAddr("192.168.10.11")}},
		Pods: []lab.Machine{
			{Name: "client", Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.1")}},
			{Name: "server", Addresses: []netip.Addr{pathEndpoint(0), pathEndpoint(1)}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	r := &route{name: name, lab: l}
	if r.listener, err = listen(l.Host("server")); err != nil {
		b.Fatal(err)
	}
	if write == nil {
		return r
	}
	write(b, l.Node(), c)
	for _, i := range []int{0, c.Services - 1} {
		r.paths = append(r.paths, &path{to: netip.AddrPortFrom(crowd.ClusterIP(i), crowd.Port)})
	}
	return r
}

func (r *route) end(b *testing.B) {
	b.Helper()
	if err := errors.Join(syscall.Close(r.listener), r.lab.Close()); err != nil {
		b.Error(err)
	}
}

// pathPolicy takes the client for a pod.
func pathPolicy() plan.Config {
	c := policyNFTables()
	c.ClusterCIDRs = prefixes("10.244.0.0/16")
	return c
}

func writeSluice(b *testing.B, node *lab.Host, c crowd.Crowd) {
	b.Helper()
	s := &sluice{B: b, crowd: c, node: node}
	s.begin()
	s.planner = plan.NewPlanner(pathPolicy())
	s.load()
	s.forget()
}

// writeUncounted writes the same without the one lookup that counts connections.
func writeUncounted(b *testing.B, node *lab.Host, c crowd.Crowd) {
	b.Helper()
	planner := plan.NewPlanner(pathPolicy())
	planner.Update(model.Delta(*c.Snapshot()))
	var text strings.Builder
	if err := nftables.Compile(planner.Plan(), nftables.DefaultOptions()).Render(&text); err != nil {
		b.Fatal(err)
	}
	const counting = "meta priority & ffff:f000 @connections"
	if !strings.Contains(text.String(), counting) {
		b.Fatal("no rule counts connections")
	}
	if err := runNFT(node, strings.ReplaceAll(text.String(), counting, "")); err != nil {
		b.Fatal(err)
	}
}

func writeKubeProxy(b *testing.B, node *lab.Host, c crowd.Crowd) {
	b.Helper()
	for _, text := range kubeProxyTable(c, pathPiece) {
		text = strings.ReplaceAll(text, clusterCIDR, "10.244.0.0/16")
		if err := runNFT(node, text); err != nil {
			b.Fatal(err)
		}
	}
}

// interleave connects along all paths, in another order in each round.
func interleave(b *testing.B, routes []*route) {
	b.Helper()
	type leg struct {
		*route
		*path
	}
	var legs []leg
	for _, r := range routes {
		for _, p := range r.paths {
			legs = append(legs, leg{r, p})
		}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range rounds {
		rnd.Shuffle(len(legs), func(i, j int) { legs[i], legs[j] = legs[j], legs[i] })
		for _, l := range legs {
			err := l.lab.Host("client").Do(func() error { return l.run(l.listener, burst) })
			if err != nil {
				b.Fatalf("%s, %s: %v", l.name, l.to, err)
			}
		}
	}
}

// run makes connections, one after the other.
func (p *path) run(listener, n int) error {
	for range n {
		connect, whole, err := talk(p.to, listener)
		if err != nil {
			return err
		}
		p.connect, p.whole = append(p.connect, connect), append(p.whole, whole)
	}
	return nil
}

// row compares first and last path with the only one of direct.
func (r *route) row(direct *route) []string {
	cells := []string{r.name}
	base := direct.paths[0]
	for _, p := range r.paths {
		cells = append(cells, microseconds(middle(p.connect)), ratio(middle(p.connect), middle(base.connect)))
	}
	for len(cells) < 5 {
		cells = append(cells, "")
	}
	for _, p := range r.paths {
		cells = append(cells, fmt.Sprintf("%.0f", float64(time.Second)/float64(middle(p.whole))), ratio(middle(base.whole), middle(p.whole)))
	}
	for len(cells) < 9 {
		cells = append(cells, "")
	}
	return cells
}

func middle(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/1e3) }
