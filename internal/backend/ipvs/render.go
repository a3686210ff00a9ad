package ipvs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
)

// Render writes the virtual servers as ipvsadm -S would. What else there is stands in comments before and behind them: the
// addresses of the device, and the rules of the inner mode. ipvsadm -R takes it without the comments.
func (r *Ruleset) Render(w io.Writer) error {
	out := bufio.NewWriter(w)
	r.renderDevice(out)
	for _, s := range r.sorted() {
		r.renderServer(out, r.server(s))
	}
	if err := r.renderRules(out); err != nil {
		return err
	}
	return out.Flush()
}

func (r *Ruleset) renderDevice(out *bufio.Writer) {
	fmt.Fprintln(out, "#", operation{verb: addDevice})
	bound := func(a netip.Addr) bool { return !r.binds(a) }
	for _, a := range slices.DeleteFunc(slices.SortedFunc(maps.Keys(r.claims), netip.Addr.Compare), bound) {
		fmt.Fprintln(out, "#", operation{verb: addAddress, addr: a})
	}
}

// sorted lists the virtual servers that are wanted.
func (r *Ruleset) sorted() []Server {
	missing := func(s Server) bool { return r.server(s) == nil }
	return slices.DeleteFunc(slices.SortedFunc(maps.Keys(r.places), Server.Compare), missing)
}

func (r *Ruleset) renderServer(out *bufio.Writer, v *VirtualServer) {
	fmt.Fprintf(out, "# %s\n", v.Port)
	var d delta
	d.wanted(v, nil)
	for _, o := range d.before {
		fmt.Fprintln(out, o.options())
	}
}

func (r *Ruleset) renderRules(out *bufio.Writer) error {
	if r.rules.Ruleset == nil {
		return nil
	}
	var text bytes.Buffer
	if err := r.rules.Render(&text); err != nil {
		return err
	}
	fmt.Fprintf(out, "#\n# The rules beside them:\n#\n")
	for l := range bytes.Lines(text.Bytes()) {
		fmt.Fprintf(out, "#| %s", l)
	}
	return nil
}
