package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sluice/internal/plan"
)

// For is the configuration with the policy of mode, and what has no effect in that mode. It is the only place where
// policy depends on the mode; everything it sets is overwritten by the next call.
func (c Config) For(mode string) (Config, []string) {
	c.Mode = mode
	policy := c.values.policyOf(mode)
	s := c.values.section(policy)
	c.MasqueradeBit = int(s.masqueradeBit)
	c.SyncPeriod, c.MinSyncPeriod = s.syncPeriod, s.minSyncPeriod
	c.Plan.MasqueradeAll = s.masqueradeAll
	c.Plan.LocalhostNodePorts = *c.values.as.IPTables.LocalhostNodePorts
	c.Plan.LocalhostProxy = policy == ModeNFTables && c.Features[gateLocalhost]
	c.Plan.GuardClusterIPs = policy == ModeNFTables || policy == ModeIPVS || policy == ModeUserspace
	c.Plan.GuardAddresses = policy == ModeIPVS
	c.Plan.AnswerPing = c.values.as.Sluice.AnswerPing
	list, _ := c.values.nodePorts() // Resolve has checked them
	switch policy {
	case ModeNFTables:
		c.Plan.LocalhostNodePorts = namesLoopback(list) && !c.Features[gateLocalhost]
		if len(c.values.as.NodePortAddresses) == 0 {
			list.Primary = true
		}
	case ModeIPVS:
		c.Plan.LocalhostNodePorts = false // ipvs does not take what comes from a loopback address
	}
	c.Plan.NodePortAddresses = list
	return c, c.values.inVainFor(mode)
}

// policyOf is the mode whose policy a mode has. The plan alone is that of the mode which the file is written for.
func (v *Values) policyOf(mode string) string {
	if mode == ModePlan {
		mode = strings.ToLower(v.fileMode)
	}
	if mode == "" {
		return ModeNFTables
	}
	return mode
}

// section is what a mode has for itself in the file.
type section struct {
	name                      string
	masqueradeBit             int32
	masqueradeAll             bool
	syncPeriod, minSyncPeriod time.Duration
}

func (v *Values) section(policy string) section {
	s := section{
		ModeIPTables, *v.as.IPTables.MasqueradeBit, v.as.IPTables.MasqueradeAll,
		v.as.IPTables.SyncPeriod.Duration, v.as.IPTables.MinSyncPeriod.Duration,
	}
	switch policy {
	case ModeNFTables:
		n := &v.as.NFTables
		s = section{ModeNFTables, *n.MasqueradeBit, n.MasqueradeAll, n.SyncPeriod.Duration, n.MinSyncPeriod.Duration}
	case ModeIPVS: // as kube-proxy, which masquerades by iptables' settings there
		s.name, s.syncPeriod, s.minSyncPeriod = ModeIPVS, v.as.IPVS.SyncPeriod.Duration, v.as.IPVS.MinSyncPeriod.Duration
	}
	if s.minSyncPeriod == noPause {
		s.minSyncPeriod = 0
	}
	return s
}

// masqueradeSection is where a section's masqueradeBit is.
func masqueradeSection(name string) string {
	if name == ModeIPVS {
		return ModeIPTables
	}
	return name
}

// namesLoopback reports whether a list of node port addresses speaks of loopback itself, as a range of all addresses
// does not.
func namesLoopback(list plan.NodePortAddresses) bool {
	return list.Localhost || slices.ContainsFunc(list.Prefixes, func(p netip.Prefix) bool {
		return p.Bits() > 0 && p.Overlaps(netip.MustParsePrefix("127.0.0.0/8"))
	})
}

// inVainFor tells of flags that have no effect in a mode. Of a file's sections, that of another mode is there to be
// passed over.
func (v *Values) inVainFor(mode string) (told []string) {
	if mode != ModeNFTables {
		return nil
	}
	unused := func(path, flag, instead string) {
		if v.where[path] == (place{"--" + flag, true}) {
			told = append(told, fmt.Sprintf("--%s has no effect in mode %s; %s", flag, mode, instead))
		}
	}
	unused("iptables.masqueradeBit", "iptables-masquerade-bit", "nftables.masqueradeBit of a configuration file has")
	unused("iptables.localhostNodePorts", "iptables-localhost-nodeports", "node ports answer on loopback addresses if --nodeport-addresses names them")
	return told
}
