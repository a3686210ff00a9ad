package nftwalk

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
)

// virtual has virtual servers for 10.9.9.9:80 (one endpoint elsewhere, a heavier one on the node), for mark 7 (another
// endpoint) and for 10.9.9.9:81 (none).
var virtual = Host{Addrs: host.Addrs, IPVS: &IPVS{
	Has: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.9.9.9") },
	Pick: func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
		end := func(text string, weight uint16) plan.Endpoint {
			return plan.Endpoint{AddrPort: netip.MustParseAddrPort(text), Weight: weight}
		}
		switch {
		case p != model.TCP:
			return nil, false
		case mark == 7:
			return []plan.Endpoint{end("3.3.3.3:3", 1)}, true
		case to.String() == "10.9.9.9:80":
			return []plan.Endpoint{end("1.1.1.1:1", 1), end("192.168.7.5:2", 3)}, true
		}
		return nil, to.String() == "10.9.9.9:81"
	},
}}

func TestIPVS(t *testing.T) {
	const client, node = "10.1.1.1", "192.168.7.5"
	asked := nft.Is{Left: nft.CTOriginalDaddr, Right: nft.Value{}.Addr(netip.MustParseAddr("10.9.9.9"))}
	to := func(a string) nft.Statement {
		return nft.Is{Left: nft.IPDaddr, Right: nft.Value{}.Addr(netip.MustParseAddr(a))}
	}
	mark7 := nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: 7}}
	everywhere := func(s ...nft.Statement) *table {
		rs := new(table)
		for _, chain := range []string{"mangle-output", "output", "filter-output", "input", "forward", "post", "late-input"} {
			rs.rule(chain, s...)
		}
		return rs
	}
	for name, c := range map[string]struct {
		rules    *table
		from, to string
		want     string
	}{
		"from the network": {new(table).rule("forward", drop), client, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"from the node":    {new(table).rule("forward", drop), node, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"what goes to elsewhere is given a new source": {
			new(table).rule("post", nft.Masquerade{}), client, "10.9.9.9:80",
			"forward 1.1.1.1:1=0.25m 192.168.7.5:2=0.75",
		},
		"so is all that the node sends": {
			new(table).rule("post", nft.Masquerade{}), node, "10.9.9.9:80",
			"forward 1.1.1.1:1=0.25m 192.168.7.5:2=0.75m",
		},
		"a mark comes first":             {new(table).rule("pre", mark7), client, "10.9.9.9:80", "forward 3.3.3.3:3=1"},
		"a mark of what the node sends":  {new(table).rule("output", mark7), node, "10.9.9.9:80", "forward 3.3.3.3:3=1"},
		"a mark that is made too late":   {new(table).rule("filter-output", mark7), node, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"the address is the node's":      {new(table).rule("late-input", drop), client, "10.9.9.9:79", "drop"},
		"what is left alone goes on":     {new(table).rule("late-input", to("10.9.9.9"), nft.Reject{Reset: true}), client, "10.9.9.9:79", "reject"},
		"without endpoints":              {new(table), client, "10.9.9.9:81", "reject"},
		"other addresses":                {new(table).rule("late-input", drop), client, "10.9.9.8:80", "unhandled"},
		"refused before":                 {new(table).rule("input", to("10.9.9.9"), nft.Reject{}), client, "10.9.9.9:80", "reject"},
		"refused before, from the node":  {new(table).rule("mangle-output", to("10.9.9.9"), drop), node, "10.9.9.9:80", "drop"},
		"too late, from the node":        {new(table).rule("filter-output", to("10.9.9.9"), drop), node, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"what is sent on goes by output": {new(table).rule("mangle-output", to("1.1.1.1"), drop), client, "10.9.9.9:80", "forward 192.168.7.5:2=0.75 or drop=0.25"},
		"nat is not asked again":         {new(table).rule("output", to("1.1.1.1"), drop), client, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"it is not called translated":    {everywhere(nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}, drop), client, "10.9.9.9:80", "forward 1.1.1.1:1=0.25 192.168.7.5:2=0.75"},
		"what it asked for is known":     {new(table).rule("post", asked, nft.Masquerade{}), client, "10.9.9.9:80", "forward 1.1.1.1:1=0.25m 192.168.7.5:2=0.75"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Walk(c.rules, packet(c.from, c.to), virtual)
			if got := oracle.Short(r); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, r)
			}
			checkShares(t, r)
		})
	}
}

// TestIPVSIsTold: a step says what virtual server took a packet, and where it sent it.
func TestIPVSIsTold(t *testing.T) {
	var told []string
	for _, s := range Walk(new(table), packet("10.1.1.1", "10.9.9.9:80"), virtual).Steps {
		told = append(told, s.At+": "+s.Rule+": "+s.Says)
	}
	want := "ipvs input: virtual server 10.9.9.9:80/TCP: the destination becomes 1.1.1.1:1 or 192.168.7.5:2"
	if got := strings.Join(told, "\n"); got != want {
		t.Errorf("steps:\n%s\nwant:\n%s", got, want)
	}
}
