package ipvs

import (
	"slices"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// The schedulers that Sluice chooses by itself.
const (
	roundRobin               = "rr"
	weightedRoundRobin       = "wrr"
	leastConnections         = "lc"
	weightedLeastConnections = "wlc"
	sourceHash               = "sh"
	maglevHash               = "mh"
)

// Flags change what a scheduler does. Each scheduler has a meaning of its own for them.
type Flags uint32

// The flags of sh and mh.
const (
	// hashFallback takes another destination where the hash leads to one of weight 0. Without it a client whose
	// destination drains is refused.
	hashFallback Flags = 0x08
	// hashPort hashes the client's port, too, so that the connections of one client are spread.
	hashPort Flags = 0x10
)

// Scheduling is how a virtual server spreads connections.
type Scheduling struct {
	Scheduler string
	Flags     Flags
	// Persistence is how long a client keeps its endpoint, in whole seconds. 0: it is chosen anew each time.
	Persistence time.Duration
}

// longestAffinity is kube-proxy's limit, one day.
const longestAffinity = 24 * time.Hour

// schedulings are the ways to spread connections of a Service port over a list, the best first: the kernel may lack a
// scheduler.
//
// The virtual server of a mark with persistence keeps the port that clients asked for, whatever the endpoint's is
// (ip_vs_sched_persist). So clients get the endpoint that the hash of their address leads to instead.
func (o *Options) schedulings(p *plan.Port, at Server, list []plan.Endpoint) []Scheduling {
	affinity := min(p.Affinity, longestAffinity)
	var all []Scheduling
	if at.Mark != 0 && affinity > 0 {
		all, affinity = append(all, Scheduling{Scheduler: sourceHash, Flags: flagsOf(sourceHash)}), 0
	}
	add := func(name string) {
		s := Scheduling{name, flagsOf(name), affinity}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	even := evenWeights(list)
	for _, name := range []string{chosen(p), o.Scheduler, roundRobin} {
		if name == "" {
			continue
		}
		if !even {
			add(weighted(name))
		}
		add(name)
	}
	return all
}

// chosen is the scheduler that a Service port asks for, "" if it leaves that to the node. There is none that draws lots.
func chosen(p *plan.Port) string {
	if p.Scheduler != "" {
		return p.Scheduler
	}
	switch p.Balancing {
	case model.BalanceRoundRobin:
		return roundRobin
	case model.BalanceLeastConnections:
		return leastConnections
	}
	return ""
}

// weighted is the scheduler that does the same and heeds weights.
func weighted(name string) string {
	switch name {
	case roundRobin:
		return weightedRoundRobin
	case leastConnections:
		return weightedLeastConnections
	}
	return name
}

func flagsOf(name string) Flags {
	switch name {
	case sourceHash:
		return hashFallback
	case maglevHash:
		return hashFallback | hashPort // the port as kube-proxy has it
	}
	return 0
}

func evenWeights(list []plan.Endpoint) bool {
	for i := range list {
		if list[i].Weight != list[0].Weight {
			return false
		}
	}
	return true
}
