package demo

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/kernel/ipvs"
	"sluice/internal/kernel/link"
)

// device has the Services' addresses in mode ipvs.
const device = "kube-ipvs0"

// ipvsRules are those of mode ipvs: the kernel's virtual servers, and rules of another mode beside them.
type ipvsRules struct {
	rules
	story *story
}

// flags have the daemon look for what others did to virtual servers every second: the kernel does not tell.
func (*ipvsRules) flags() []string { return []string{"--ipvs-sync-period", "1s"} }

func (r *ipvsRules) explain(ctx context.Context) error {
	s := r.story
	servers, err := r.servers()
	if err != nil {
		return err
	}
	s.say("Virtual servers of the kernel spread connections, one for each address and port of a Service. As ipvsadm -L -n")
	s.say("prints them, with each pod's weight and how many connections it has, open ones and those that have ended lately:")
	s.print("")
	s.quote(serverTable(servers))
	s.print("")
	s.say("rr gives every pod its turn; where weights differ, wrr gives them as many turns as they weigh. The addresses are")
	s.say("on a device, %s, so that the kernel takes packets to them for its own, as virtual servers need it:", device)
	s.print("")
	addresses, _, err := r.addresses()
	for _, a := range addresses {
		s.quote(a.String())
	}
	s.print("")
	s.say("Rules beside them do what virtual servers cannot: give packets the node's address, refuse, and drop.")
	s.compare(ctx)
	return err
}

func (r *ipvsRules) leadTo(_ context.Context, endpoint netip.AddrPort) (bool, error) {
	servers, err := r.servers()
	return slices.ContainsFunc(servers, func(v virtualServer) bool {
		return slices.ContainsFunc(v.destinations, func(d ipvs.FoundDestination) bool { return d.AddrPort == endpoint && d.Weight > 0 })
	}), err
}

// damages are that somebody deletes the virtual server of a cluster IP.
func (r *ipvsRules) damages(context.Context) ([]damage, error) {
	before, err := r.servers()
	at := netip.MustParseAddrPort(mysqlAddress)
	name := ipvs.Name{Addr: at.Addr(), Protocol: ipvs.TCP, Port: at.Port()}
	return []damage{{
		command: "ipvsadm -D -t " + mysqlAddress,
		do:      func() error { return r.do(func(h *ipvs.Handle) error { return h.Delete(name) }) },
		mended: func() (bool, error) {
			now, err := r.servers()
			return serverCommands(before) == serverCommands(now), err
		},
		soon: "it looks every second here, every 30 s by default",
	}}, err
}

func (r *ipvsRules) state(ctx context.Context) (all string, generation uint32, err error) {
	servers, err := r.servers()
	if err != nil {
		return "", 0, err
	}
	all, generation, err = r.rules.state(ctx)
	return all + serverCommands(servers), generation, err
}

func (r *ipvsRules) leftovers(ctx context.Context) (string, error) {
	left, err := r.rules.leftovers(ctx)
	servers, serversErr := r.servers()
	_, there, deviceErr := r.addresses()
	lines := []string{left, serverCommands(servers)}
	if there {
		lines = append(lines, "device "+device)
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), errors.Join(err, serversErr, deviceErr)
}

// do opens a socket to the node's virtual servers.
func (r *ipvsRules) do(f func(*ipvs.Handle) error) error {
	return r.story.node.Do(func() error {
		h, err := ipvs.Open()
		if err != nil {
			return err
		}
		return errors.Join(f(h), h.Close())
	})
}

// addresses are those of the device, if it is there.
func (r *ipvsRules) addresses() (all []netip.Prefix, there bool, err error) {
	err = r.story.node.Do(func() error {
		h, err := link.Here()
		if err != nil {
			return err
		}
		defer h.Close()
		all, err = h.AddressesOf(device)
		return err
	})
	if errors.Is(err, link.ErrNotFound) {
		return nil, false, nil
	}
	return all, true, err
}
