package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
)

// Connections to an endpoint outlast its place in the lists for as long as it serves.
func TestDraining(t *testing.T) {
	zoned := func(e model.Endpoint, zone string) model.Endpoint {
		e.Hints = &model.Hints{Zones: []string{zone}}
		return e
	}
	for name, tt := range map[string]struct {
		endpoints []model.Endpoint
		want      []string
	}{
		"all ready": {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "rs")}, nil},
		"terminating beside a ready one": {
			[]model.Endpoint{endpoint("10.244.1.1", "node-a", "rs"), endpoint("10.244.2.1", "node-b", "st")},
			[]string{"10.244.2.1:8080"},
		},
		"terminating, the last one": {[]model.Endpoint{endpoint("10.244.2.1", "node-b", "st")}, nil},
		"no longer serving": {
			[]model.Endpoint{endpoint("10.244.1.1", "node-a", "rs"), endpoint("10.244.2.1", "node-b", "t")}, nil,
		},
		"hinted to another zone": {
			[]model.Endpoint{zoned(endpoint("10.244.1.1", "node-a", "rs"), "zone-1"), zoned(endpoint("10.244.2.1", "node-b", "rs"), "zone-2")},
			[]string{"10.244.2.1:8080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Build(config, Host{}, snapshot(service(), slice(tt.endpoints...)))
			var got []string
			for _, e := range p.Ports[PortID{Service: web, Protocol: model.TCP}].Draining {
				got = append(got, e.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
