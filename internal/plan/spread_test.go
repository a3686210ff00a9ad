package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
)

// weighted are endpoints a, b, c … with these weights.
func weighted(weights ...uint16) (list []Endpoint) {
	for i, w := range weights {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), 80)
		list = append(list, Endpoint{AddrPort: addr, Weight: w})
	}
	return list
}

func TestSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		weights []uint16
		want    string
	}{
		"none":              {nil, ""},
		"one":               {[]uint16{7}, "a"},
		"equal":             {[]uint16{4, 4, 4}, "abc"},
		"far apart":         {[]uint16{5, 1, 1}, "aabacaa"},
		"in lowest terms":   {[]uint16{50, 20}, "abaaaba"},
		"nothing in common": {[]uint16{2, 3}, "babab"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, e := range Spread(weighted(tt.weights...)) {
				got.WriteByte('a' + e.Addr().As4()[3])
			}
			if got.String() != tt.want {
				t.Errorf("%v: %s, want %s", tt.weights, got.String(), tt.want)
			}
		})
	}
	equal := weighted(3, 3, 3)
	if n := testing.AllocsPerRun(10, func() { Spread(equal) }); n != 0 {
		t.Errorf("%g allocations for equal weights, want none", n)
	}
}

// Wherever one begins to count, an endpoint has its share, give or take what cannot be divided.
func TestSpreadIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint16Range(1, 12), 1, 6).Draw(t, "weights")
		list := weighted(weights...)
		spread := Spread(list)
		total := totalWeight(list)
		for i, e := range list {
			turns := 0
			for at, turn := range spread {
				if turn == e {
					turns++
				}
				share := float64(at+1) * float64(weights[i]) / float64(total)
				if d := float64(turns) - share; d <= -float64(len(list)) || d >= float64(len(list)) {
					t.Fatalf("%v: endpoint %d had %d of the first %d turns, its share is %g", weights, i, turns, at+1, share)
				}
			}
			if turns*total != int(weights[i])*len(spread) {
				t.Fatalf("%v: endpoint %d has %d of %d turns", weights, i, turns, len(spread))
			}
		}
	})
}

// To repeat is to spread without the order.
func TestRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := weighted(rapid.SliceOfN(rapid.Uint16Range(1, 12), 0, 6).Draw(t, "weights")...)
		byAddress := func(a, b Endpoint) int { return a.Compare(b.AddrPort) }
		want := slices.SortedFunc(slices.Values(Spread(list)), byAddress)
		if got := Repeat(list); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestWeights(t *testing.T) {
	web := service(func(s *model.Service) {
		s.Weights = []model.Weight{
			{Address: netip.MustParseAddr("10.244.1.1"), Value: 5},
			{Pod: "web-v1-*", Value: 3},
			{Node: "node-b", Value: 2},
		}
	})
	pod := func(e model.Endpoint, name string) model.Endpoint { e.Pod = name; return e }
	p := NewPlanner(config)
	p.Update(model.Delta(*snapshot(web, slice(
		pod(endpoint("10.244.1.1", "node-b", "rs"), "web-v1-a"),
		pod(endpoint("10.244.1.2", "node-b", "rs"), "web-v1-b"),
		pod(endpoint("10.244.1.3", "node-b", "rs"), "web-v2-a"),
		pod(endpoint("10.244.1.4", "node-a", "rs"), "web-v1"),
	))))
	var sum float64
	for i, target := range p.Plan().Decide(packet("10.244.9.9", "10.96.0.10:80")).Targets {
		want := []uint16{5, 3, 2, 1}[i]
		if target.Weight != want || target.Share != float64(want)/11 {
			t.Errorf("%s has weight %d and a share of %g, want weight %d", target.Addr(), target.Weight, target.Share, want)
		}
		sum += target.Share
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("the shares add up to %g", sum)
	}
	if c := p.Update(model.Delta{Services: map[model.Name]*model.Service{web.Name: service()}}); len(c.Ports) != 1 {
		t.Errorf("other weights change %d ports, want 1", len(c.Ports))
	}
}
