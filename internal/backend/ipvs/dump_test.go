package ipvs

import (
	"fmt"
	"slices"
	"strings"
)

// dump is what ipvsadm -S prints, sorted, the addresses of the device, and local routes.
func (k *kernel) dump() (lines []string) {
	for n, s := range k.servers {
		at := serverOf(n)
		h := Scheduling{s.Scheduler, Flags(s.Flags) &^ signature, s.Persistence}
		lines = append(lines, at.String()+h.options())
		for a, d := range s.destinations {
			lines = append(lines, fmt.Sprintf("%s -r %s -w %d", at, a, d.Weight))
		}
	}
	for p := range k.links[DeviceName] {
		lines = append(lines, p.String())
	}
	for a, source := range k.standIns {
		lines = append(lines, fmt.Sprintf("local %s src %s", a, source))
	}
	slices.Sort(lines)
	return lines
}

// wanted is what dump is to be.
func (r *Ruleset) wanted() (lines []string) {
	for _, s := range r.sorted() {
		v := r.server(s)
		lines = append(lines, s.String()+v.Schedulings[0].options())
		for _, e := range v.Endpoints {
			lines = append(lines, fmt.Sprintf("%s -r %s -w %d", s, e.AddrPort, e.Weight))
		}
	}
	for a := range r.claims {
		if r.binds(a) {
			lines = append(lines, prefixOf(a).String())
		}
	}
	slices.Sort(lines)
	return lines
}

func sameLines(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func join(lines []string) string { return strings.Join(lines, "\n") }
