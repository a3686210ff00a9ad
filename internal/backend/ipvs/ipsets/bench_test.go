package ipsets

import (
	"fmt"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// many are 5000 Services with ten endpoints each.
func many() (*plan.Planner, model.Delta) {
	p := plan.NewPlanner(plan.Config{NodeName: "node-a"})
	d := model.Delta{Services: map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{}}
	for i := range 5000 {
		name := model.Name{Namespace: "default", Name: fmt.Sprint("web-", i)}
		d.Services[name] = &model.Service{
			Name: name, Type: model.ClusterIP, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})},
			Ports: []model.ServicePort{{Name: "http", Protocol: model.TCP, Port: 80}},
		}
		sl := &model.Slice{Name: name, Service: name, Ports: []model.SlicePort{{Name: "http", Protocol: model.TCP, Port: 8080}}}
		for e := range 10 {
			sl.Endpoints = append(sl.Endpoints, model.Endpoint{
				Address: netip.AddrFrom4([4]byte{10, 128 + byte(i>>8), byte(i), byte(e)}), Ready: true, Serving: true,
			})
		}
		d.Slices[name] = sl
	}
	p.Update(d)
	return p, d
}

func BenchmarkCompile(b *testing.B) {
	p, _ := many()
	for b.Loop() {
		compiled(p.Plan())
	}
}

// One endpoint more and less, as far as the entries that differ.
func BenchmarkChange(b *testing.B) {
	p, d := many()
	r := compiled(p.Plan())
	name := model.Name{Namespace: "default", Name: "web-7"}
	more, have := *d.Slices[name], contents{}
	more.Endpoints = more.Endpoints[1:]
	for k := range kinds {
		if r.families[model.IPv4].present(k) {
			have[k] = r.families[model.IPv4].set(k)
		}
	}
	for i := 0; b.Loop(); i++ {
		f, sl := r.families[model.IPv4], []*model.Slice{&more, d.Slices[name]}[i%2]
		at := f.position()
		r.Update(p.Plan(), p.Update(model.Delta{Slices: map[model.Name]*model.Slice{name: sl}}))
		places, ok := f.since(at)
		ds := f.setChanges(&have, places, !ok, nil)
		if len(ds) != 1 || ds[0].size() != 1 {
			b.Fatalf("%+v", ds)
		}
		have.advance(&ds[0])
	}
}
