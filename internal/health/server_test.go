package health

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
}

func start(t *testing.T, cfg plan.Config) *world {
	t.Helper()
	nstest.Require(t)
	w := &world{healthy: true, snap: model.NewSnapshot()}
	cfg.NodeName = "node-a"
	w.planner = plan.NewPlanner(cfg)
	w.Server = New(func() bool { return w.healthy }, slog.New(slog.NewTextHandler(&w.log, nil)))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// step moves to a Snapshot with the Service at a health check node port (0: no Service) and endpoints on this node.
func (w *world) step(port uint16, local int) {
	next := model.NewSnapshot()
	next.Nodes["node-a"] = &model.Node{Name: "node-a"}
	if port != 0 {
		s := &model.Service{
			Name: model.Name{Namespace: "shop", Name: "web"}, Type: model.LoadBalancer,
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
		got = append(got, at.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1:32100"}, got); diff != "" {
		t.Error(diff)
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
	if _, _, _, err := get("[::1]:32100"); err != nil {
		t.Errorf("the other family: %v, want an answer", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.listen()
	w.mu.Unlock()
	if _, _, _, err := get("127.0.0.1:32100"); err != nil {
		t.Errorf("the port is free again: %v, want an answer", err)
	}
}
