package iptwalk

import (
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/iptables/sets"
)

// setTest asks a set. One that nobody can tell the contents of is not known.
func setTest(o rules.Option) test {
	if o.Name != "match-set" || len(o.Values) != 2 {
		return always(unknown)
	}
	return func(w *walker, s state) answer {
		_, found, known := w.findInSet(o.Values[0], o.Values[1], s)
		if !known {
			return unknown
		}
		return truth(found)
	}
}

// findInSet looks a packet up by the parts of it that are named: "dst", "dst,dst", "dst,dst,src".
func (w *walker) findInSet(name, parts string, s state) (mark uint32, found, known bool) {
	if w.host.Sets == nil {
		return 0, false, false
	}
	set := w.host.Sets(name)
	dirs := strings.Split(parts, ",")
	if set == nil || !slices.Contains(partsOf[set.Type], len(dirs)) {
		return 0, false, false
	}
	p := sets.Packet{Addr: s.dst.Addr(), Protocol: w.pkt.Protocol, Port: s.dst.Port(), Third: s.dst.Addr()}
	port := 1
	if set.Type == sets.BitmapPort {
		port = 0
	}
	if port < len(dirs) && dirs[port] == "src" {
		return 0, false, false // the client's port
	}
	if dirs[0] == "src" {
		p.Addr = s.src
	}
	if len(dirs) > 2 && dirs[2] == "src" {
		p.Third = s.src
	}
	mark, found = set.Find(p)
	return mark, found, true
}

// partsOf are the numbers of parts by which a set may be asked. The kernel takes more than it needs.
var partsOf = map[sets.Type][]int{
	sets.HashIP:        {1, 2, 3},
	sets.HashIPPort:    {2, 3},
	sets.HashIPPortIP:  {3},
	sets.HashIPPortNet: {3},
	sets.BitmapPort:    {1, 2, 3},
}

// mapSet gives packets the mark of the entry that they are in, as SET --map-set --map-mark does; other uses of the target
// do nothing to a packet.
func (w *walker) mapSet(r *rule, f flow) flow {
	o, maps := rules.Find(r.parsed.TargetOptions, "map-set")
	_, marks := rules.Find(r.parsed.TargetOptions, "map-mark")
	if !maps || !marks || len(o.Values) != 2 {
		return f
	}
	return f.Each(func(s state) state {
		mark, found, known := w.findInSet(o.Values[0], o.Values[1], s)
		switch {
		case !known:
			w.assume("unknown set, assumed to leave the mark: " + string(r.text))
		case found:
			s.mark = mark
		}
		return s
	})
}
