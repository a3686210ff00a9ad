package nftables

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/testkit/sample"
	"sluice/internal/trace"
)

func packet(from, to string, via plan.Via) plan.Packet {
	return plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP, Via: via}
}

// TestRefusedIsNotMarked: what Sluice refuses others may yet send somewhere, and they did not ask for another source.
func TestRefusedIsNotMarked(t *testing.T) {
	const outside, node = "203.0.113.5", "192.168.10.11"
	for _, policy := range []model.TrafficPolicy{model.PolicyCluster, model.PolicyLocal} {
		r := compileKind(func(s *model.Service, sls [2]*model.Slice) {
			external(s)
			s.ExternalPolicy, sls[0].Endpoints = policy, nil
		})
		for _, pkt := range []plan.Packet{
			packet(outside, "198.51.100.1:80", plan.ViaForward), packet(outside, "192.0.2.1:80", plan.ViaForward),
			packet(outside, node+":30080", plan.ViaForward), packet(outside, "10.96.0.10:80", plan.ViaForward),
			packet(node, "192.0.2.1:80", plan.ViaLocal), packet(node, "10.96.0.10:80", plan.ViaLocal),
		} {
			got := r.Trace(pkt)
			if got.Verdict != trace.Reject || strings.Contains(oracle.Steps(got), "meta mark set") {
				t.Errorf("policy %v, %+v: %s\n%s", policy, pkt, got.Verdict, oracle.Steps(got))
			}
		}
	}
}

// TestAddressWithTheNumberOfANodePort: clients outside get what the address has, though its port is another Service's
// node port.
func TestAddressWithTheNumberOfANodePort(t *testing.T) {
	local := func(edit func(*model.Service)) func(*model.Service) {
		return func(s *model.Service) {
			s.Type, s.ExternalPolicy = model.NodePort, model.PolicyLocal
			edit(s)
		}
	}
	r := newRig(
		t, serviceWith(1, addrsOf("10.244.1.5"), local(func(s *model.Service) { s.ExternalIPs, s.Ports[0].Port = sample.Addrs("192.0.2.1"), 30080 })),
		serviceWith(2, addrsOf("10.244.1.6"), local(func(s *model.Service) { s.Ports[0].NodePort = 30080 })),
	).rules
	for to, want := range map[string]string{"192.0.2.1:30080": "10.244.1.5:8080", "192.168.10.11:30080": "10.244.1.6:8080"} {
		got := r.Trace(packet("203.0.113.5", to, plan.ViaForward))
		if len(got.Endpoints) != 1 || got.Endpoints[0].Address.String() != want {
			t.Errorf("%s leads to %v, want %s\n%s", to, got.Endpoints, want, oracle.Steps(got))
		}
	}
}
