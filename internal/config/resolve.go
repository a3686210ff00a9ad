package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Resolve checks every value and makes the [Config] of them. The error joins one for each wrong value.
func (v Values) Resolve() (Config, []string, error) {
	v.complete()
	clusterCIDRs, cidrErr := v.clusterCIDRs()
	detect, detectErr := v.detect()
	_, portsErr := v.nodePorts()
	nodeIP, ipErr := v.nodeIP()
	mode := strings.ToLower(string(v.as.Mode))
	c := Config{
		Plan: plan.Config{
			NodeName:            NormalizeNodeName(v.as.HostnameOverride),
			NodeIP:              nodeIP,
			DetectLocal:         detect,
			ClusterCIDRs:        clusterCIDRs,
			BridgeInterface:     v.as.DetectLocal.BridgeInterface,
			InterfaceNamePrefix: v.as.DetectLocal.InterfaceNamePrefix,
		},
		values: v,
	}
	partsErr := v.parts(&c)
	c.Plan.IgnoreExternalIPs = !c.Features[gateExternalIPs]
	c, inVain := c.For(mode)
	err := errors.Join(cidrErr, detectErr, portsErr, v.checkMode(mode), v.checkNumbers(mode), ipErr, partsErr)
	return c, slices.Concat(v.warnings(detect), inVain, v.inVain(), v.inVainOfGates()), err
}

// NormalizeNodeName spells a node's name as the API does: trimmed, in lower case.
func NormalizeNodeName(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

func (v *Values) checkMode(mode string) error {
	switch mode {
	case "", ModePlan, ModeIPTables, ModeNFTables, ModeUserspace:
		return nil
	case ModeIPVS:
		if on, said := v.as.FeatureGates[gateIPVS]; said && !on {
			return v.wrong("mode", mode, "the feature gate %s is off", gateIPVS)
		}
		return nil
	}
	return v.wrong("mode", strconv.Quote(string(v.as.Mode)), "Sluice has no such mode; want %s, %s, %s or %s", ModeNFTables, ModeIPTables, ModeIPVS, ModeUserspace)
}

// checkNumbers checks the section of the mode. Where none is given it may turn out to be either; most values of the two
// are the same, so faults of the second are told once the first has none.
func (v *Values) checkNumbers(mode string) error {
	err := v.checkSection(v.policyOf(mode))
	if mode == "" && err == nil {
		err = v.checkSection(ModeIPTables)
	}
	return err
}

func (v *Values) checkSection(policy string) error {
	s := v.section(policy)
	var errs []error
	if s.masqueradeBit < 0 || s.masqueradeBit > 31 {
		errs = append(errs, v.wrong(masqueradeSection(s.name)+".masqueradeBit", s.masqueradeBit, "want 0 to 31"))
	}
	if s.syncPeriod <= 0 {
		errs = append(errs, v.wrong(s.name+".syncPeriod", s.syncPeriod, "want more than 0"))
	}
	switch path := s.name + ".minSyncPeriod"; {
	case s.minSyncPeriod < 0:
		errs = append(errs, v.wrong(path, s.minSyncPeriod, "want 0 or more"))
	case s.minSyncPeriod > s.syncPeriod && s.syncPeriod > 0:
		errs = append(errs, fmt.Errorf("%s: %v is longer than the sync period of %v (%s)", v.at(path), s.minSyncPeriod, s.syncPeriod, v.at(s.name+".syncPeriod")))
	}
	return errors.Join(errs...)
}

// clusterCIDRs takes one range, or one of each family in any order.
func (v *Values) clusterCIDRs() (ranges []netip.Prefix, err error) {
	if strings.TrimSpace(v.as.ClusterCIDR) == "" {
		return nil, nil
	}
	var errs []error
	var seen [2]bool
	for s := range strings.SplitSeq(v.as.ClusterCIDR, ",") {
		p, err := parsePrefix(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", v.at("clusterCIDR"), err))
			continue
		}
		f := model.FamilyOf(p.Addr())
		if seen[f] {
			errs = append(errs, fmt.Errorf("%s: %q: a second %s range; want at most one of each family", v.at("clusterCIDR"), s, f))
		}
		seen[f] = true
		ranges = append(ranges, p)
	}
	return ranges, errors.Join(errs...)
}

// nodePorts reads ranges and keywords. An address without a length is no range: kube-proxy refuses it, and to guess
// what was meant could open more than is wanted.
func (v *Values) nodePorts() (list plan.NodePortAddresses, err error) {
	keywords := map[string]*bool{"all": &list.All, "primary": &list.Primary, "localhost": &list.Localhost}
	var errs []error
	for i, s := range v.as.NodePortAddresses {
		path := fmt.Sprintf("nodePortAddresses[%d]", i)
		s = strings.TrimSpace(s)
		if keyword, ok := keywords[s]; ok {
			if *keyword {
				errs = append(errs, v.wrong(path, strconv.Quote(s), "the list has it already"))
			}
			*keyword = true
			continue
		}
		p, err := parsePrefix(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w, or primary, localhost or all", v.at(path), err))
			continue
		}
		list.Prefixes = append(list.Prefixes, p)
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
	const path, bridge, prefix = "detectLocalMode", "detectLocal.bridgeInterface", "detectLocal.interfaceNamePrefix"
	modes := []plan.DetectMode{plan.DetectClusterCIDR, plan.DetectNodeCIDR, plan.DetectBridgeInterface, plan.DetectInterfaceNamePrefix}
	at := slices.IndexFunc(modes, func(m plan.DetectMode) bool { return m.String() == string(v.as.DetectLocalMode) })
	if at < 0 {
		return 0, v.wrong(path, strconv.Quote(string(v.as.DetectLocalMode)), "want one of %v", modes)
	}
	mode, detect := modes[at], v.as.DetectLocal
	switch {
	case mode == plan.DetectBridgeInterface && detect.BridgeInterface == "":
		return 0, v.wrong(path, mode, "name the bridge with detectLocal.bridgeInterface or --pod-bridge-interface")
	case mode == plan.DetectInterfaceNamePrefix && detect.InterfaceNamePrefix == "":
		return 0, v.wrong(path, mode, "give the prefix with detectLocal.interfaceNamePrefix or --pod-interface-name-prefix")
	case mode == plan.DetectBridgeInterface:
		return mode, v.checkInterface(bridge, detect.BridgeInterface, maxInterface)
	case mode == plan.DetectInterfaceNamePrefix:
		return mode, v.checkInterface(prefix, detect.InterfaceNamePrefix, maxInterface-1) // a rule has a "+" after it
	}
	return mode, nil
}

// maxInterface is the length of the longest name of an interface (IFNAMSIZ less the NUL).
const maxInterface = 15

// checkInterface refuses what cannot be in a name, or every rule with it would be refused later.
func (v *Values) checkInterface(path, name string, longest int) error {
	if len(name) > longest || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/:+!"'\`, r) }) {
		return v.wrong(path, strconv.Quote(name), "want the name of an interface, %d characters at most", longest)
	}
	return nil
}

// warnings tells of settings that have no effect beside others.
func (v *Values) warnings(detect plan.DetectMode) (told []string) {
	unused := func(path, said string, wanted plan.DetectMode) {
		if said != "" && detect != wanted {
			told = append(told, fmt.Sprintf("%s: %q has no effect: detect-local-mode is %s", v.at(path), said, detect))
		}
	}
	unused("clusterCIDR", v.as.ClusterCIDR, plan.DetectClusterCIDR)
	unused("detectLocal.bridgeInterface", v.as.DetectLocal.BridgeInterface, plan.DetectBridgeInterface)
	unused("detectLocal.interfaceNamePrefix", v.as.DetectLocal.InterfaceNamePrefix, plan.DetectInterfaceNamePrefix)
	return told
}
