package health

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sluice/internal/kernel/link"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// world is a Server that follows the plan of one load-balanced Service.
type world struct {
	*Server
	planner *plan.Planner
	snap    *model.Snapshot
	healthy bool
	log     bytes.Buffer
	told    []string
	failing []string
}

func start(t *testing.T, cfg plan.Config) *world {
	t.Helper()
	nstest.Require(t)
	w := &world{healthy: true, snap: model.NewSnapshot()}
	cfg.NodeName = "node-a"
	w.planner = plan.NewPlanner(cfg)
	w.Server = New(func() bool { return w.healthy }, slog.New(slog.NewTextHandler(&w.log, nil)))
	w.Tell = func(service model.Name, reason, note string) {
		w.told = append(w.told, service.String()+" "+reason+": "+note)
	}
	w.Failing = func(texts []string) { w.failing = texts }
	before := goleak.IgnoreCurrent()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() {
		stop()
		<-done
		goleak.VerifyNone(t, before)
	})
	return w
}

// host moves to a machine with these addresses.
func (w *world) host(addresses ...string) {
	var h plan.Host
	for _, a := range addresses {
		h.Addresses = append(h.Addresses, netip.MustParseAddr(a))
	}
	w.Update(w.planner.Plan(), w.planner.SetHost(h))
}

// again is what happens from time to time.
func (w *world) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listen()
}

// step moves to a Snapshot with the Service at a health check node port (0: no Service) and endpoints on this node.
func (w *world) step(port uint16, local int) { w.move("web", port, local) }

// move is step with a Service of any name.
func (w *world) move(service string, port uint16, local int) {
	next := model.NewSnapshot()
	next.Nodes["node-a"] = &model.Node{Name: "node-a"}
	if port != 0 {
		s := &model.Service{
			Name: model.Name{Namespace: "shop", Name: service}, Type: model.LoadBalancer,
			ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::10")}, ExternalPolicy: model.PolicyLocal,
			HealthCheckNodePort: port, Ports: []model.ServicePort{{Protocol: model.TCP, Port: 80, NodePort: 30080}},
		}
		slice := &model.Slice{Name: s.Name, Service: s.Name, Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8080}}}
		for i := range local {
			addr := netip.AddrFrom4([4]byte{10, 244, 1, byte(i + 1)})
			slice.Endpoints = append(slice.Endpoints, model.Endpoint{Address: addr, Node: "node-a", Ready: true, Serving: true})
		}
		next.Services[s.Name], next.Slices[s.Name] = s, slice
	}
	changes := w.planner.Update(model.Diff(w.snap, next))
	w.snap = next
	w.Update(w.planner.Plan(), changes)
}

func get(addr string) (int, string, http.Header, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/any/path")
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header, err
}

func TestAnswers(t *testing.T) {
	w := start(t, plan.Config{})
	for _, tt := range []struct {
		local   int
		healthy bool
		status  int
	}{
		{2, true, http.StatusOK},
		{0, true, http.StatusServiceUnavailable},
		{1, false, http.StatusServiceUnavailable},
		{1, true, http.StatusOK},
	} {
		w.healthy = tt.healthy
		w.step(32100, tt.local)
		status, body, header, err := get("127.0.0.1:32100")
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("{\n\t\"service\": {\n\t\t\"namespace\": \"shop\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": %d,\n\t\"serviceProxyHealthy\": %v\n}", tt.local, tt.healthy)
		if diff := cmp.Diff(want, body); diff != "" {
			t.Error(diff)
		}
		got := []string{header.Get("Content-Type"), header.Get("X-Content-Type-Options"), header.Get("X-Load-Balancing-Endpoint-Weight")}
		if diff := cmp.Diff([]string{"application/json", "nosniff", fmt.Sprint(tt.local)}, got); diff != "" {
			t.Error(diff)
		}
		if status != tt.status {
			t.Errorf("%d endpoints here, healthy %v: status %d, want %d", tt.local, tt.healthy, status, tt.status)
		}
	}
}

func TestFollowsThePlan(t *testing.T) {
	w := start(t, plan.Config{})
	answers := func(addr string) bool { _, _, _, err := get(addr); return err == nil }
	w.step(32100, 1)
	if !answers("127.0.0.1:32100") || !answers("[::1]:32100") {
		t.Error("want answers in both families")
	}
	w.step(32101, 1)
	if answers("127.0.0.1:32100") || !answers("127.0.0.1:32101") {
		t.Error("the port moved: want answers at the new one alone")
	}
	w.step(0, 0)
	if answers("127.0.0.1:32101") {
		t.Error("the Service is gone: want no answer")
	}
}

func TestOnlyNodePortAddresses(t *testing.T) {
	w := start(t, plan.Config{NodePortAddresses: plan.NodePortAddresses{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}, LocalhostNodePorts: true})
	w.step(32100, 1)
	var got []string
	for at := range w.listeners {
		got = append(got, at.at.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"127.0.0.1:32100", "invalid AddrPort"}, got); diff != "" {
		t.Error(diff)
	}
}

// The addresses of the node come and go; whoever is connected to one that stays notices nothing.
func TestFollowsAddresses(t *testing.T) {
	w := start(t, plan.Config{NodePortAddresses: plan.NodePortAddresses{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fd00:10::/64")}}})
	onLoopback(t, "192.0.2.1/32", "192.0.2.2/32", "fd00:10::1/128")
	w.host("192.0.2.1", "fd00:10::1", "198.51.100.1")
	w.step(32100, 1)
	answers := func() (all []bool) {
		for _, addr := range []string{"192.0.2.1:32100", "192.0.2.2:32100", "[fd00:10::1]:32100"} {
			_, _, _, err := get(addr)
			all = append(all, err == nil)
		}
		return all
	}
	for _, tt := range []struct {
		host []string
		want []bool
	}{
		{[]string{"192.0.2.1", "fd00:10::1", "198.51.100.1"}, []bool{true, false, true}},
		{[]string{"192.0.2.1", "192.0.2.2", "fd00:10::1"}, []bool{true, true, true}},
		{[]string{"192.0.2.1", "192.0.2.2"}, []bool{true, true, false}},
		{[]string{"192.0.2.1"}, []bool{true, false, false}},
	} {
		stays := dial(t, "192.0.2.1:32100")
		w.host(tt.host...)
		if diff := cmp.Diff(tt.want, answers()); diff != "" {
			t.Errorf("node with %v: answers (-want +got):\n%s", tt.host, diff)
		}
		ask(t, stays)
	}
	leaves := dial(t, "192.0.2.1:32100")
	w.host("192.0.2.2")
	if _, err := leaves.Read(make([]byte, 1)); err == nil {
		t.Error("the address is gone: want its connections closed")
	}
}

// onLoopback gives the network addresses that connections can be made to.
func onLoopback(t *testing.T, prefixes ...string) {
	t.Helper()
	h, err := link.Here()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	for _, text := range prefixes {
		prefix := netip.MustParsePrefix(text)
		if err := h.AddAddress("lo", prefix); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.DeleteAddress("lo", prefix) })
	}
	if err := h.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask asks on a connection, which ends with the answer: nobody is to take a place at the port by staying.
func ask(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || !resp.Close {
		t.Errorf("after the answer: error %v, Connection: close %v; want the end of the connection", err, resp.Close)
	}
}

func TestNoAddress(t *testing.T) {
	w := start(t, plan.Config{NodePortAddresses: plan.NodePortAddresses{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}})
	onLoopback(t, "192.0.2.1/32")
	w.host("198.51.100.1")
	w.step(32100, 1)
	w.again()
	want := []string{`shop/web FailedToStartServiceHealthcheck: node node-a failed to start healthcheck "shop/web" on port 32100: nodePortAddresses has no IPv4 address of this node`}
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	w.host("192.0.2.1")
	if _, _, _, err := get("192.0.2.1:32100"); err != nil {
		t.Errorf("the node has such an address now: %v, want an answer", err)
	}
	w.host("198.51.100.1")
	if len(w.told) != 2 {
		t.Errorf("told %q, want the same once more: the node has none again", w.told)
	}
}

// Two Services cannot have one port. One of them answers, and the other is told why it does not, until it can.
func TestSharedPort(t *testing.T) {
	w := start(t, plan.Config{})
	first := []plan.Change{change("api", 32100), change("web", 32100)}
	w.Update(w.planner.Plan(), plan.Changes{Ports: first})
	_, body, _, err := get("127.0.0.1:32100")
	if err != nil || !strings.Contains(body, `"api"`) {
		t.Errorf("answer %q, %v, want that of the first by name", body, err)
	}
	if len(w.told) != 1 || !strings.HasPrefix(w.told[0], "shop/web ") {
		t.Errorf("told %q, want the other Service", w.told)
	}
	w.Update(w.planner.Plan(), plan.Changes{Ports: []plan.Change{{ID: first[0].ID, Old: first[0].New}}})
	if _, body, _, err = get("127.0.0.1:32100"); err != nil || !strings.Contains(body, `"web"`) {
		t.Errorf("answer %q, %v, want that of the one that is left", body, err)
	}
}

func change(service string, port uint16) plan.Change {
	id := plan.PortID{Service: model.Name{Namespace: "shop", Name: service}, Family: model.IPv4}
	return plan.Change{ID: id, New: &plan.Port{ID: id, HealthCheck: &plan.HealthCheck{Port: port, Ready: 1}}}
}

// A server that ends by itself is replaced.
func TestBrokenServer(t *testing.T) {
	w := start(t, plan.Config{})
	w.step(32100, 1)
	w.mu.Lock()
	for _, l := range w.listeners {
		_ = l.socket.Close()
		err, ended := <-l.ended, make(chan error, 1)
		ended <- err // which was taken to know that it has ended
		close(ended)
		l.ended = ended
	}
	w.mu.Unlock()
	w.again()
	if len(w.told) != 2 {
		t.Errorf("told %q, want one of each family", w.told)
	}
	w.again()
	if _, _, _, err := get("127.0.0.1:32100"); err != nil {
		t.Errorf("%v, want an answer", err)
	}
}

func TestTakenPort(t *testing.T) {
	w := start(t, plan.Config{})
	other, err := net.Listen("tcp4", "0.0.0.0:32100")
	if err != nil {
		t.Fatal(err)
	}
	w.step(32100, 1)
	if log := w.log.String(); !strings.Contains(log, "shop/web") || !strings.Contains(log, "address already in use") {
		t.Errorf("log %q, want the Service and the kernel's reason", log)
	}
	w.again()
	want := []string{`shop/web FailedToStartServiceHealthcheck: node node-a failed to start healthcheck "shop/web" on port 32100: listen tcp4 0.0.0.0:32100: bind: address already in use`}
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	fails := []string{"Service shop/web: health check node port 32100 does not answer: listen tcp4 0.0.0.0:32100: bind: address already in use"}
	if diff := cmp.Diff(fails, w.failing); diff != "" {
		t.Errorf("what fails (-want +got):\n%s", diff)
	}
	if _, _, _, err := get("[::1]:32100"); err != nil {
		t.Errorf("the other family: %v, want an answer", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	w.again()
	if _, _, _, err := get("127.0.0.1:32100"); err != nil {
		t.Errorf("the port is free again: %v, want an answer", err)
	}
	if len(w.failing) > 0 {
		t.Errorf("what fails: %q, want nothing any more", w.failing)
	}
}
