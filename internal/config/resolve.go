package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Resolve checks every value and makes the [Config] of them. The error joins one for each wrong value.
func (v Values) Resolve() (Config, []string, error) {
	clusterCIDRs, cidrErr := v.clusterCIDRs()
	detect, detectErr := v.detect()
	_, portsErr := v.nodePorts()
	mode := strings.ToLower(v.mode.is)
	c, inVain := Config{
		Plan: plan.Config{
			NodeName:            NormalizeNodeName(v.hostname.is),
			DetectLocal:         detect,
			ClusterCIDRs:        clusterCIDRs,
			BridgeInterface:     v.bridgeInterface.is,
			InterfaceNamePrefix: v.interfaceNamePrefix.is,
		},
		values: v,
	}.For(mode)
	return c, append(v.warnings(detect), inVain...), errors.Join(cidrErr, detectErr, portsErr, v.checkMode(mode), v.checkNumbers(mode))
}

// NormalizeNodeName spells a node's name as the API does: trimmed, in lower case.
func NormalizeNodeName(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

func (v *Values) checkMode(mode string) error {
	if !slices.Contains([]string{"", ModePlan, ModeIPTables, ModeNFTables}, mode) {
		return fmt.Errorf("%s: %q: Sluice has no such mode; want %s or %s", v.mode.where, v.mode.is, ModeNFTables, ModeIPTables)
	}
	return nil
}

// checkNumbers checks the section of the mode. Where none is given it may turn out to be either; most values of the two
// are the same, so faults of the second are told once the first has none.
func (v *Values) checkNumbers(mode string) error {
	err := v.section(v.policyOf(mode)).check()
	if mode == "" && err == nil {
		err = v.iptables.check()
	}
	return err
}

func (s *section) check() error {
	var errs []error
	if bit := s.masqueradeBit; bit.is < 0 || bit.is > 31 {
		errs = append(errs, fmt.Errorf("%s: %d: want 0 to 31", bit.where, bit.is))
	}
	if p := s.syncPeriod; p.is <= 0 {
		errs = append(errs, fmt.Errorf("%s: %v: want more than 0", p.where, p.is))
	}
	switch p := s.minSyncPeriod; {
	case p.is < 0:
		errs = append(errs, fmt.Errorf("%s: %v: want 0 or more", p.where, p.is))
	case p.is > s.syncPeriod.is && s.syncPeriod.is > 0:
		errs = append(errs, fmt.Errorf("%s: %v is longer than the sync period of %v (%s)", p.where, p.is, s.syncPeriod.is, s.syncPeriod.where))
	}
	return errors.Join(errs...)
}

// clusterCIDRs takes one range, or one of each family in any order.
func (v *Values) clusterCIDRs() (ranges []netip.Prefix, err error) {
	if strings.TrimSpace(v.clusterCIDR.is) == "" {
		return nil, nil
	}
	var errs []error
	var seen [2]bool
	for s := range strings.SplitSeq(v.clusterCIDR.is, ",") {
		p, err := parsePrefix(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", v.clusterCIDR.where, err))
			continue
		}
		f := model.FamilyOf(p.Addr())
		if seen[f] {
			errs = append(errs, fmt.Errorf("%s: %q: a second %s range; want at most one of each family", v.clusterCIDR.where, s, f))
		}
		seen[f] = true
		ranges = append(ranges, p)
	}
	return ranges, errors.Join(errs...)
}

// nodePorts reads ranges and keywords. An address without a length is no range: kube-proxy refuses it, and to guess
// what was meant could open more than is wanted.
func (v *Values) nodePorts() (list plan.NodePortAddresses, err error) {
	var errs []error
	for _, s := range v.nodePortAddresses.is {
		switch s = strings.TrimSpace(s); s {
		case "all":
			list.All = true
		case "primary":
			list.Primary = true
		case "localhost":
			list.Localhost = true
		default:
			p, err := parsePrefix(s)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w, or primary, localhost or all", v.nodePortAddresses.where, err))
				continue
			}
			list.Prefixes = append(list.Prefixes, p)
		}
	}
	return list, errors.Join(errs...)
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(s))
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q: want an address range such as 10.0.0.0/8", s)
	}
	return p.Masked(), nil
}

func (v *Values) detect() (plan.DetectMode, error) {
	if v.detectLocalMode.is == "" {
		return plan.DetectClusterCIDR, nil
	}
	modes := []plan.DetectMode{plan.DetectClusterCIDR, plan.DetectNodeCIDR, plan.DetectBridgeInterface, plan.DetectInterfaceNamePrefix}
	at := slices.IndexFunc(modes, func(m plan.DetectMode) bool { return m.String() == v.detectLocalMode.is })
	if at < 0 {
		return 0, fmt.Errorf("%s: %q: want one of %v", v.detectLocalMode.where, v.detectLocalMode.is, modes)
	}
	mode := modes[at]
	switch {
	case mode == plan.DetectBridgeInterface && v.bridgeInterface.is == "":
		return 0, fmt.Errorf("%s: %s: name the bridge with detectLocal.bridgeInterface or --pod-bridge-interface", v.detectLocalMode.where, mode)
	case mode == plan.DetectInterfaceNamePrefix && v.interfaceNamePrefix.is == "":
		return 0, fmt.Errorf("%s: %s: give the prefix with detectLocal.interfaceNamePrefix or --pod-interface-name-prefix", v.detectLocalMode.where, mode)
	case mode == plan.DetectBridgeInterface:
		return mode, checkInterface(v.bridgeInterface, maxInterface)
	case mode == plan.DetectInterfaceNamePrefix:
		return mode, checkInterface(v.interfaceNamePrefix, maxInterface-1) // a rule has a "+" after it
	}
	return mode, nil
}

// maxInterface is the length of the longest name of an interface (IFNAMSIZ less the NUL).
const maxInterface = 15

// checkInterface refuses what cannot be in a name, or every rule with it would be refused later.
func checkInterface(name value[string], longest int) error {
	if len(name.is) > longest || strings.ContainsFunc(name.is, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/:+!"'\`, r) }) {
		return fmt.Errorf("%s: %q: want the name of an interface, %d characters at most", name.where, name.is, longest)
	}
	return nil
}

// warnings tells of settings that have no effect beside others.
func (v *Values) warnings(detect plan.DetectMode) (told []string) {
	unused := func(s value[string], wanted plan.DetectMode) {
		if s.is != "" && detect != wanted {
			told = append(told, fmt.Sprintf("%s: %q has no effect: detect-local-mode is %s", s.where, s.is, detect))
		}
	}
	unused(v.clusterCIDR, plan.DetectClusterCIDR)
	unused(v.bridgeInterface, plan.DetectBridgeInterface)
	unused(v.interfaceNamePrefix, plan.DetectInterfaceNamePrefix)
	return told
}
