package demo

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const proxied = `# proxy at 192.168.10.11:11745/TCP for default/mysql-service: round robin
#   192.168.125.129:3306
#   192.168.125.131:3306 weight 2
# proxy at 192.168.10.11:20920/TCP for default/registry:ssh: round robin
#   172.17.0.5:22
# not proxied: default/sctp (SCTP, IPv4): nobody can
table inet sluice {
	map endpoints4 {
		elements = { 0:1000 . 0 : 192.168.10.11 . 11745 comment "# proxy at" }
	}
}
`

func TestProxies(t *testing.T) {
	want := `# proxy at 192.168.10.11:11745/TCP for default/mysql-service: round robin
#   192.168.125.129:3306
#   192.168.125.131:3306 weight 2
# proxy at 192.168.10.11:20920/TCP for default/registry:ssh: round robin
#   172.17.0.5:22
`
	if diff := cmp.Diff(want, proxies(proxied)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProxiesOf(t *testing.T) {
	for service, want := range map[string][]string{
		"mysql-service": {"192.168.10.11:11745"}, "registry": {"192.168.10.11:20920"}, "mysql": nil,
	} {
		var got []string
		for _, a := range proxiesOf(proxied, service) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", service, got, want)
		}
	}
}

func TestReadStatus(t *testing.T) {
	tests := []struct {
		told      string
		endpoints int
		done, bad bool
	}{
		{`{"servicePorts": [{"state": "done", "endpoints": 2}]}`, 2, true, false},
		{`{"servicePorts": [{"state": "pending", "endpoints": 1}]}`, 1, false, false},
		{`{"servicePorts": []}`, 0, false, true},
		{`no Service`, 0, false, true},
	}
	for _, tt := range tests {
		endpoints, done, err := readStatus(tt.told)
		if endpoints != tt.endpoints || done != tt.done || (err != nil) != tt.bad {
			t.Errorf("%s: %d endpoints, done: %v, error %v", tt.told, endpoints, done, err)
		}
	}
}

func TestServiceOf(t *testing.T) {
	s := newTestStory(t)
	for endpoint, want := range map[string]string{"172.17.0.5:22": "registry", "192.168.125.131:3306": "mysql-service", "192.0.2.1:80": ""} {
		if got := s.serviceOf(netip.MustParseAddrPort(endpoint)); got != want {
			t.Errorf("%s is behind %q, want %q", endpoint, got, want)
		}
	}
}
