package plan

import (
	"net/netip"
	"strings"

	"sluice/internal/model"
)

// Detector tells one family's pod traffic from other traffic: by source range or by incoming interface. The zero
// value detects nothing: then every client counts as no pod, and nothing is masqueraded for where it comes from.
type Detector struct {
	CIDR netip.Prefix
	// Interface is a name, or the start of one if Wildcard is set.
	Interface string
	Wildcard  bool
}

// Implemented reports whether the Detector can detect anything.
func (d Detector) Implemented() bool { return d.CIDR.IsValid() || d.Interface != "" }

// Matches reports whether a packet from src that came in by iface is a pod's. A packet of the node's own has no
// incoming interface: pass "".
func (d Detector) Matches(src netip.Addr, iface string) bool {
	switch {
	case d.CIDR.IsValid():
		return d.CIDR.Contains(src)
	case d.Interface == "":
		return false
	case d.Wildcard:
		return strings.HasPrefix(iface, d.Interface)
	}
	return iface == d.Interface
}

func detectors(cfg Config, node *model.Node) (ds [2]Detector) {
	switch cfg.DetectLocal {
	case DetectBridgeInterface:
		return [2]Detector{{Interface: cfg.BridgeInterface}, {Interface: cfg.BridgeInterface}}
	case DetectInterfaceNamePrefix:
		d := Detector{Interface: cfg.InterfaceNamePrefix, Wildcard: true}
		return [2]Detector{d, d}
	case DetectNodeCIDR:
		if node != nil {
			ds = firstOfEach(node.PodCIDRs)
		}
	default:
		ds = firstOfEach(cfg.ClusterCIDRs)
	}
	return ds
}

func firstOfEach(prefixes []netip.Prefix) (ds [2]Detector) {
	for _, p := range prefixes {
		if d := &ds[model.FamilyOf(p.Addr())]; !d.CIDR.IsValid() {
			d.CIDR = p.Masked()
		}
	}
	return ds
}
