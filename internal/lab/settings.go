package lab

import (
	"maps"
	"slices"
	"strings"

	"sluice/internal/kernel/netns"
	"sluice/internal/kernel/sysctl"
)

// settings are kernel settings of one namespace, by their sysctl names.
type settings map[string]string

// everywhere makes the kernel answer at once and every time: addresses are usable without detecting duplicates, no
// redirect changes a route that a test counts on, and no limit turns a refusal into silence.
func everywhere() settings {
	return settings{
		"net.ipv4.conf.all.rp_filter":            "0",
		"net.ipv4.conf.default.rp_filter":        "0",
		"net.ipv4.conf.all.accept_redirects":     "0",
		"net.ipv4.conf.default.accept_redirects": "0",
		"net.ipv4.conf.all.send_redirects":       "0",
		"net.ipv4.conf.default.send_redirects":   "0",
		"net.ipv4.icmp_ratemask":                 "0",
		"net.ipv6.conf.all.disable_ipv6":         "0",
		"net.ipv6.conf.default.disable_ipv6":     "0",
		"net.ipv6.conf.all.accept_dad":           "0",
		"net.ipv6.conf.default.accept_dad":       "0",
		"net.ipv6.conf.all.accept_ra":            "0",
		"net.ipv6.conf.default.accept_ra":        "0",
		"net.ipv6.conf.all.accept_redirects":     "0",
		"net.ipv6.conf.default.accept_redirects": "0",
		"net.ipv6.icmp.ratemask":                 "2", // "packet too big" only, which is never limited
	}
}

// router lets a namespace forward packets.
func router() settings {
	return settings{
		"net.ipv4.ip_forward":          "1",
		"net.ipv6.conf.all.forwarding": "1",
	}
}

// guest lets a namespace hear its own addresses from outside, and speak for IPv6 addresses that no interface of it has.
func guest() settings {
	return settings{
		"net.ipv4.conf.all.accept_local": "1",
		"net.ipv6.ip_nonlocal_bind":      "1",
	}
}

// newNamespace makes a network namespace with the settings of its role and those that all have.
func newNamespace(role settings) (*netns.NS, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	all := everywhere()
	maps.Copy(all, role)
	err = ns.Do(func() error { return all.apply() })
	if err != nil {
		_ = ns.Close()
		return nil, err
	}
	return ns, nil
}

// apply sets them in the namespace of the calling thread.
func (s settings) apply() error {
	_, err := sysctl.Get("net.ipv6.conf.all.forwarding")
	ipv6 := err == nil // a kernel may have been started without
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if !ipv6 && strings.HasPrefix(key, "net.ipv6.") {
			continue
		}
		if _, err := sysctl.Set(key, s[key]); err != nil {
			return err
		}
	}
	return nil
}
