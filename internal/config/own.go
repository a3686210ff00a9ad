package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-proxy/config/v1alpha1"
)

// File is a configuration file: kube-proxy's, and a section for what kube-proxy does not have, which it passes over.
type File struct {
	v1alpha1.KubeProxyConfiguration `json:",inline"`
	Sluice                          Own `json:"sluice,omitzero"`
}

// Own is the section "sluice" of a configuration file. What is zero is as if nothing was said.
type Own struct {
	AnswerPing bool         `json:"answerPing,omitempty"`
	Userspace  OwnUserspace `json:"userspace,omitzero"`
}

// OwnUserspace is the section "sluice.userspace".
type OwnUserspace struct {
	MaxConnections int32           `json:"maxConnections,omitempty"`
	MaxSessions    int32           `json:"maxSessions,omitempty"`
	UDPIdleTimeout metav1.Duration `json:"udpIdleTimeout,omitzero"`
	DrainTimeout   metav1.Duration `json:"drainTimeout,omitzero"`
}

// IPVS is what mode ipvs alone needs.
type IPVS struct {
	// Scheduler is the kernel's name of one; empty: rr.
	Scheduler string
	// ExcludeCIDRs are addresses whose virtual servers are others'.
	ExcludeCIDRs []netip.Prefix
	// StrictARP has the machine answer ARP for an address on the interface alone that has it.
	StrictARP bool
	// How long ipvs remembers a connection; 0: leave it as it is.
	TCPTimeout, TCPFinTimeout, UDPTimeout time.Duration
}

// Userspace is what mode userspace alone needs. It is comparable.
type Userspace struct {
	// FirstPort and LastPort are the range of the proxy's own ports; 0: the default range.
	FirstPort, LastPort uint16
	// MaxConnections and MaxSessions are how many TCP connections and UDP sessions there may be; 0: as many as the
	// machine has room for.
	MaxConnections, MaxSessions int
	// UDPIdle is after how long without a datagram a session ends; 0: the default.
	UDPIdle time.Duration
	// Drain is how long connections of a Service that is gone go on; 0: until they end.
	Drain time.Duration
}

func (v *Values) ipvs() (IPVS, error) {
	is := &v.as.IPVS
	c := IPVS{
		Scheduler: is.Scheduler, StrictARP: is.StrictARP,
		TCPTimeout: is.TCPTimeout.Duration, TCPFinTimeout: is.TCPFinTimeout.Duration, UDPTimeout: is.UDPTimeout.Duration,
	}
	var errs faults
	if c.Scheduler != "" && !schedulerName.MatchString(c.Scheduler) {
		errs.add(v.wrong("ipvs.scheduler", strconv.Quote(c.Scheduler), "want the name of a scheduler, such as rr"))
	}
	for i, s := range is.ExcludeCIDRs {
		p, err := parsePrefix(s)
		if err != nil {
			errs.add(fmt.Errorf("%s: %w", v.at(fmt.Sprintf("ipvs.excludeCIDRs[%d]", i)), err))
			continue
		}
		c.ExcludeCIDRs = append(c.ExcludeCIDRs, p)
	}
	errs.add(v.notBelow0("ipvs.tcpTimeout", c.TCPTimeout))
	errs.add(v.notBelow0("ipvs.tcpFinTimeout", c.TCPFinTimeout))
	errs.add(v.notBelow0("ipvs.udpTimeout", c.UDPTimeout))
	return c, errs.join()
}

// schedulerName is what the kernel has room for.
var schedulerName = regexp.MustCompile(`^[a-z0-9_-]{1,15}$`)

func (v *Values) userspace() (Userspace, error) {
	is := &v.as.Sluice.Userspace
	c := Userspace{
		MaxConnections: int(is.MaxConnections), MaxSessions: int(is.MaxSessions),
		UDPIdle: is.UDPIdleTimeout.Duration, Drain: is.DrainTimeout.Duration,
	}
	var errs faults
	var err error
	c.FirstPort, c.LastPort, err = v.portRange()
	errs.add(err)
	errs.add(v.notNegative("sluice.userspace.maxConnections", is.MaxConnections))
	errs.add(v.notNegative("sluice.userspace.maxSessions", is.MaxSessions))
	errs.add(v.notBelow0("sluice.userspace.udpIdleTimeout", c.UDPIdle))
	errs.add(v.notBelow0("sluice.userspace.drainTimeout", c.Drain))
	return c, errs.join()
}

// portRange reads "FIRST-LAST", "FIRST+MORE" or one port, as kube-proxy did. "" and "0" leave it to the mode.
func (v *Values) portRange() (first, last uint16, err error) {
	s := strings.TrimSpace(v.as.PortRange)
	if s == "" || s == "0" || s == "0-0" {
		return 0, 0, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	base, more, isSum := strings.Cut(s, "+")
	switch {
	case isRange:
		first, last = portNumber(from), portNumber(to)
	case isSum:
		first = portNumber(base)
		if n, err := strconv.ParseUint(more, 10, 16); err == nil && uint64(first)+n <= 65535 {
			last = first + uint16(n)
		}
	default:
		first = portNumber(s)
		last = first
	}
	if first == 0 || last < first {
		return 0, 0, v.wrong("portRange", strconv.Quote(s), "want a range of ports such as 10000-29999")
	}
	return first, last, nil
}

// portNumber is 0 for what is none.
func portNumber(s string) uint16 {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}
