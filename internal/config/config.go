package config

import (
	"time"

	"sluice/internal/plan"
)

// The modes that Sluice has, as --mode names them.
const (
	// ModePlan is no mode to run in: it stands for the plan itself, where something is only shown.
	ModePlan      = "plan"
	ModeIPTables  = "iptables"
	ModeNFTables  = "nftables"
	ModeUserspace = "userspace"
	ModeIPVS      = "ipvs"
)

// Config is the whole configuration, checked.
type Config struct {
	// Mode is empty where none was given: the best that the kernel can do, which only the kernel knows. Until
	// [Config.For] says otherwise, all else here is then as for nftables.
	Mode string
	Plan plan.Config
	// MasqueradeBit is the bit of the packet mark that asks for masquerading, 0 to 31.
	MasqueradeBit int
	// SyncPeriod is how often the kernel is read back and repaired; it also bounds how long a retry waits.
	SyncPeriod time.Duration
	// MinSyncPeriod is the longest pause between a write to the kernel and the one of what changed meanwhile.
	MinSyncPeriod time.Duration

	Client    Client
	Serve     Serve
	Host      Host
	Log       Log
	IPVS      IPVS
	Userspace Userspace
	// Features are all feature gates of kube-proxy 1.37, and whether each is on. It is not to be changed.
	Features map[string]bool

	values Values
}
