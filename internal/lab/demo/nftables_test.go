package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const listed = `table inet sluice {
	map endpoints4 {
		typeof meta priority . numgen random mod 2 : ip daddr . th dport
		size 16384
		elements = { 12:3000 . 0 : 192.168.125.129 . 3306,
			     12:3000 . 1 : 192.168.125.131 . 3306,
			     0:2000 . 0 : 172.17.0.5 . 22 }
	}

	map services4 {
		type ipv4_addr . inet_proto . inet_service : classid
		elements = { 10.254.162.44 . tcp . 3306 comment "default/mysql-service" : 12:3011,
			     10.10.10.2 . tcp . 22 comment "default/registry:ssh" : 0:200d }
	}

	map services6 {
		type ipv6_addr . inet_proto . inet_service : classid
	}

	set connections {
		type classid
		counter
		elements = { 0:2000 counter packets 7 bytes 420 comment "default/registry:ssh" }
	}

	map buckets {
		type classid : verdict
		elements = { 0:c : goto random-1,
			     0:10 : goto random-2 }
	}

	chain services4 {
		meta nfproto ipv4 meta l4proto { tcp, udp, sctp } accept comment "default/registry"
	}
}
`

func TestElementsWith(t *testing.T) {
	want := `endpoints4    0:2000 . 0 : 172.17.0.5 . 22
services4     10.10.10.2 . tcp . 22 comment "default/registry:ssh" : 0:200d
`
	if diff := cmp.Diff(want, elementsWith(listed, `"default/registry`, ": 172.17.0.5 . 22")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRouteOf(t *testing.T) {
	tests := []struct {
		comment, route, list, bucket, chain string
	}{
		{"default/mysql-service", "12:3011", "12:3000", "0:10", "random-2"},
		{"default/registry:ssh", "0:200d", "0:2000", "0:c", "random-1"},
	}
	for _, tt := range tests {
		r, chain, err := routeOf(listed, "services4", tt.comment)
		if err != nil || r.String() != tt.route || r.list().String() != tt.list || r.bucket().String() != tt.bucket || chain != tt.chain {
			t.Errorf("%s: %s (list %s, bucket %s), chain %s, error %v", tt.comment, r, r.list(), r.bucket(), chain, err)
		}
	}
	for _, set := range []string{"connections", "services6"} {
		if r, chain, err := routeOf(listed, set, "default/registry:ssh"); err == nil {
			t.Errorf("%s leads to %s, %s", set, r, chain)
		}
	}
}
