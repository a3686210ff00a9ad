package ipsets

import "strings"

// mangle marks clients outside, and drops sources that ipvs would serve before the filter table sees them.
func (w *writer) mangle() {
	w.sources("mangle")
	w.begin("mangle", chainMarkOutside)
	if pods, told := w.fromPods(); told {
		pods.target = "RETURN"
		w.add(pods)
	}
	w.add(rule{match: []string{fromThisNode}, target: "RETURN"})
	w.mark(markAddress, addressPort, rule{})
	if !w.marksNodePorts() {
		return
	}
	for _, k := range addresses { // an address's own port comes before a node port
		w.addFor(k, addressPort, rule{target: "RETURN"})
	}
	for _, p := range protocols {
		for _, m := range w.nodePortMatches() {
			m.proto = p.Lower()
			w.mark(markNodePort.ofProtocol(p), partsOf(p), m)
		}
	}
}

// mark gives packets that a set has the mark of their entry. No further match is needed: others keep theirs.
func (w *writer) mark(k kind, parts string, r rule) {
	if !w.has[k] {
		return
	}
	r.comment = forms[k].comment
	r.target = strings.Join([]string{"SET --map-set", setName(k, w.family), parts, "--map-mark"}, " ")
	w.add(r)
}

func (w *writer) marksNodePorts() bool {
	for _, p := range protocols {
		if w.has[markNodePort.ofProtocol(p)] {
			return true
		}
	}
	return false
}
