package ipsets

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace/iptwalk"
)

func (n *node) compare(r *Ruleset) (lines []string) {
	n.Helper()
	n.do(func(ctx context.Context) (err error) {
		lines, err = n.backend.Compare(ctx, r)
		return err
	})
	return lines
}

func TestCompare(t *testing.T) {
	eachVariant(t, func(n *node) {
		if got := n.compare(dualStack()); !slices.Contains(got, "+add KUBE-CLUSTER-IP 10.96.0.10,tcp:80") ||
			!slices.Contains(got, "+IPv6 nat :KUBE-SERVICES - [0:0]") || !slices.Contains(got, "+IPv4 nat -A KUBE-SERVICES -s 127.0.0.0/8 -j RETURN") {
			n.Errorf("an empty kernel: %q", got)
		}
		n.apply(dualStack(), false)
		if got := n.compare(dualStack()); got != nil {
			n.Errorf("after Apply: %q", got)
		}
		n.ipset("del KUBE-CLUSTER-IP 10.96.0.10,tcp:80")
		n.ipset("add KUBE-6-CLUSTER-IP fd00::1,tcp:1")
		n.ipset("create KUBE-REJECT hash:ip,port")
		n.give(model.IPv4, "*nat\n-F KUBE-MARK-MASQ\n-A KUBE-MARK-MASQ -j ACCEPT\n:KUBE-SVC-X - [0:0]\n-A KUBE-SVC-X -j ACCEPT\nCOMMIT\n")
		want := []string{
			"+add KUBE-CLUSTER-IP 10.96.0.10,tcp:80",
			"-create KUBE-REJECT hash:ip,port family inet hashsize 1024 maxelem 65536",
			"-IPv4 nat -A KUBE-MARK-MASQ -j ACCEPT",
			"+IPv4 nat -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
			"-IPv4 nat -A KUBE-SVC-X -j ACCEPT",
			"-add KUBE-6-CLUSTER-IP fd00::1,tcp:1",
		}
		if got := n.compare(dualStack()); !slices.Equal(got, want) {
			n.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// The kernel's own rules and sets lead where those that were compiled do.
func TestTraceKernel(t *testing.T) {
	eachVariant(t, func(n *node) {
		r := dualStack()
		n.apply(r, false)
		pick := func(to netip.AddrPort, _ model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
			return []plan.Endpoint{{AddrPort: netip.AddrPortFrom(netip.MustParseAddr("10.244.9.9"), uint16(mark)), Weight: 1}}, to.Port() == 80
		}
		for _, pkt := range []plan.Packet{
			{From: netip.MustParseAddr(aClient), To: netip.MustParseAddrPort("198.51.100.1:80"), Protocol: model.TCP},
			{From: netip.MustParseAddr(another), To: netip.MustParseAddrPort("198.51.100.1:80"), Protocol: model.TCP},
			{From: netip.MustParseAddr(aClient), To: netip.MustParseAddrPort("10.96.0.10:80"), Protocol: model.TCP},
			{From: netip.MustParseAddr(aClient), To: netip.MustParseAddrPort("10.96.0.10:22"), Protocol: model.TCP},
			{From: netip.MustParseAddr(nodeIP), To: netip.MustParseAddrPort("192.0.2.1:80"), Protocol: model.TCP, Via: plan.ViaLocal},
			{From: netip.MustParseAddr(aPod), To: netip.MustParseAddrPort("8.8.8.8:80"), Protocol: model.TCP},
		} {
			want := r.TraceBalanced(pkt, pick)
			n.do(func(ctx context.Context) error {
				got, err := n.backend.TraceKernel(ctx, pkt, iptwalk.Host{Addrs: r.families[0].node.Addresses, Balance: pick})
				if !oracle.Same(want, got) {
					n.Errorf("%v: %s, want %s", pkt, oracle.Short(got), oracle.Short(want))
				}
				return err
			})
		}
	})
}
