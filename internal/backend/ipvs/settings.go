package ipvs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// setting is one that the kernel has to have.
type setting struct{ key, value, why string }

// tracked has connections of virtual servers known to connection tracking, without which nobody's source can be rewritten.
const tracked = "net.ipv4.vs.conntrack"

// settings are those that are kube-proxy's, too, but for the one that nothing works without.
func (o *Options) settings(release string) []setting {
	s := []setting{
		{"net.ipv4.vs.expire_nodest_conn", "1", "packets of connections to an endpoint that is gone are dropped until they time out"},
		{"net.ipv4.vs.expire_quiescent_template", "1", "clients with affinity are sent to an endpoint that drains"},
		{"net.ipv4.ip_forward", "1", "only connections of this node reach endpoints elsewhere"},
	}
	if reusesSlowly(release) {
		s = append(s, setting{"net.ipv4.vs.conn_reuse_mode", "0", "a client that uses a port again waits for a second"})
	}
	if o.StrictARP {
		s = append(
			s, setting{"net.ipv4.conf.all.arp_ignore", "1", "the node answers ARP for addresses of Services"},
			setting{"net.ipv4.conf.all.arp_announce", "2", "the node announces addresses of Services by ARP"},
		)
	}
	return s
}

// reusesSlowly reports whether a kernel drops the first packet of a client that uses a port again: Linux 4.1 to 5.8, see
// https://github.com/kubernetes/kubernetes/issues/93297.
func reusesSlowly(release string) bool {
	numbers := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(numbers) < 2 {
		return false
	}
	major, _ := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	from := func(a, b int) bool { return cmp.Or(cmp.Compare(major, a), cmp.Compare(minor, b)) >= 0 }
	return from(4, 1) && !from(5, 9)
}

// setUp sets the kernel up once. Only what nothing works without is an error.
func (b *Backend) setUp() error {
	if b.set {
		return nil
	}
	if _, err := b.deps.Sysctl.Set(tracked, "1"); err != nil {
		return fmt.Errorf("mode ipvs needs connection tracking of virtual servers: %w", err)
	}
	release, err := b.deps.Sysctl.Get("kernel.osrelease")
	if err != nil {
		b.deps.Warn(err)
	}
	for _, s := range b.opts.settings(release) {
		if _, err := b.deps.Sysctl.Set(s.key, s.value); err != nil {
			b.deps.Warn(fmt.Errorf("%s: %w", s.why, err))
		}
	}
	if t := timeoutsOf(&b.opts); t != noTimeouts {
		if err := b.servers.SetTimeouts(t); err != nil {
			b.deps.Warn(err)
		}
	}
	b.set = true
	return nil
}
