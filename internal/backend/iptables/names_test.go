package iptables

import (
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

func TestNames(t *testing.T) {
	id := func(namespace, name, port string) plan.PortID {
		return plan.PortID{Service: model.Name{Namespace: namespace, Name: name}, Port: port, Protocol: model.TCP}
	}
	for _, c := range []struct {
		id   plan.PortID
		want string
	}{
		{id("ns1", "svc1", "p80"), "XPGD46QRK7WJZT7O"},
		{id("ns1", "svc1", ""), "AQI2S6QIMU7PVVRP"},
		{id("default", "kubernetes", "https"), "NPX46M4PTMTKRN6Y"},
		{id("default", "registry", "ssh"), "ZMVASYV5VVSOQD2Z"},
	} {
		if got := portHash(c.id); got != c.want {
			t.Errorf("hash of %s is %s, want %s", c.id, got, c.want)
		}
	}
	for _, c := range []struct {
		id       plan.PortID
		endpoint string
		want     string
	}{
		{id("ns1", "svc1", "p80"), "10.180.0.1:80", "KUBE-SEP-SXIVWICOYRO3J4NJ"},
		{id("ns1", "svc1", "p80"), "[fd00::1]:80", "KUBE-SEP-T5UNFIPVCZXM3U7X"},
		{id("default", "registry", "ssh"), "172.17.0.5:22", "KUBE-SEP-JJDDRQDQBMLIVXO7"},
	} {
		if got := endpointChain(c.id, netip.MustParseAddrPort(c.endpoint)); got != c.want {
			t.Errorf("chain of %s at %s is %s, want %s", c.id, c.endpoint, got, c.want)
		}
	}
}

func TestOwn(t *testing.T) {
	for chain, want := range map[string]bool{
		"KUBE-SERVICES": true, "KUBE-SVC-XPGD46QRK7WJZT7O": true, "KUBE-FW-X": true, "KUBE-MARK-MASQ": true,
		"KUBE-FIREWALL": false, "KUBE-MARK-DROP": false, "KUBE-KUBELET-CANARY": false, "DOCKER": false, "PREROUTING": false,
	} {
		if own(Nat, chain) != want {
			t.Errorf("own(nat, %s) = %v", chain, !want)
		}
	}
	if own(Filter, "KUBE-SVC-XPGD46QRK7WJZT7O") {
		t.Error("chains of Service ports are only in nat")
	}
}
