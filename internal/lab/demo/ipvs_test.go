package demo

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/ipvs"
)

// twoPods is a virtual server one of whose pods drains.
func twoPods() []virtualServer {
	found := ipvs.FoundServer{Server: ipvs.Server{
		Name: ipvs.Name{Addr: netip.MustParseAddr("10.254.162.44"), Protocol: ipvs.TCP, Port: 3306}, Scheduler: "rr",
	}}
	pod := func(address string, weight, active, inactive uint32) ipvs.FoundDestination {
		return ipvs.FoundDestination{
			Destination: ipvs.Destination{AddrPort: netip.MustParseAddrPort(address), Weight: weight}, Active: active, Inactive: inactive,
		}
	}
	return []virtualServer{{found, []ipvs.FoundDestination{pod("192.168.125.129:3306", 1, 2, 300), pod("192.168.125.131:3306", 0, 0, 17)}}}
}

func TestServerTable(t *testing.T) {
	want := `  -> RemoteAddress:Port                Forward Weight ActiveConn InActConn
TCP  10.254.162.44:3306 rr
  -> 192.168.125.129:3306              Masq    1      2          300
  -> 192.168.125.131:3306              Masq    0      0          17
`
	if diff := cmp.Diff(want, serverTable(twoPods())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestServerCommands(t *testing.T) {
	want := `-A -t 10.254.162.44:3306 -s rr
-a -t 10.254.162.44:3306 -r 192.168.125.129:3306 -m -w 1
-a -t 10.254.162.44:3306 -r 192.168.125.131:3306 -m -w 0
`
	if diff := cmp.Diff(want, serverCommands(twoPods())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
