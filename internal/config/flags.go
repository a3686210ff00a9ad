package config

import (
	"time"

	"github.com/spf13/pflag"
)

// Flags are kube-proxy's policy flags on a command line, and the file that --config names.
type Flags struct {
	// File is the path of a KubeProxyConfiguration; empty: none.
	File string
	set  *pflag.FlagSet
	to   map[string]func(*Values)
}

// NewFlags declares the flags that every verb with a plan has in set, which must be parsed before [Flags.Load].
func NewFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set, to: map[string]func(*Values){}}
	set.StringVar(&f.File, "config", "", "read this `file`, a KubeProxyConfiguration; flags given as well win over it")
	text := func(name string, of func(*Values) *value[string], usage string) {
		is := set.String(name, "", usage)
		f.assign(name, func(v *Values) { *of(v) = value[string]{*is, "--" + name} })
	}
	text("hostname-override", func(v *Values) *value[string] { return &v.hostname },
		"the `name` of this node; the same as --node")
	text("node", func(v *Values) *value[string] { return &v.hostname },
		"the `name` of the Node that this machine is; default: the Node named as the host, or the only one there is")
	text("cluster-cidr", func(v *Values) *value[string] { return &v.clusterCIDR },
		"the pods' address `range`; two, of both families, are separated by a comma")
	text("detect-local-mode", func(v *Values) *value[string] { return &v.detectLocalMode },
		"how pods are told from other clients: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix")
	text("pod-bridge-interface", func(v *Values) *value[string] { return &v.bridgeInterface },
		"the bridge `interface` of the pods, for detect-local-mode BridgeInterface")
	text("pod-interface-name-prefix", func(v *Values) *value[string] { return &v.interfaceNamePrefix },
		"the `prefix` of the names of the pods' interfaces, for detect-local-mode InterfaceNamePrefix")
	f.lists()
	f.booleans()
	f.numbers()
	return f
}

// Mode declares --mode, and kube-proxy's name for it; usage says what the verb takes.
func (f *Flags) Mode(usage string) {
	var mode string
	for _, name := range []string{"mode", "proxy-mode"} {
		f.set.StringVar(&mode, name, "", usage)
		f.assign(name, func(v *Values) { v.mode = value[string]{mode, "--" + name} })
	}
	f.set.Lookup("proxy-mode").Hidden = true
}

// Daemon declares the flags that kube-proxy has beside those of policy, for the verb that takes its place.
func (f *Flags) Daemon() {}

// Load reads the file and then the flags that were given. The warnings are for the user; they stop nothing.
func (f *Flags) Load() (Config, []string, error) {
	v := Default()
	var warnings []string
	if f.File != "" {
		var err error
		if warnings, err = v.read(f.File); err != nil {
			return Config{}, warnings, err
		}
	}
	f.set.Visit(func(flag *pflag.Flag) {
		if assign, ok := f.to[flag.Name]; ok {
			assign(&v)
		}
	})
	c, more, err := v.Resolve()
	return c, append(warnings, more...), err
}

func (f *Flags) assign(name string, to func(*Values)) { f.to[name] = to }

// assignSections is assign for a flag that speaks to every mode, as kube-proxy's do whatever they are called.
func (f *Flags) assignSections(name string, to func(s *section, where string)) {
	f.assign(name, func(v *Values) {
		to(&v.iptables, "--"+name)
		to(&v.nftables, "--"+name)
	})
}

func (f *Flags) lists() {
	const name = "nodeport-addresses"
	is := f.set.StringSlice(name, nil, "the node's `addresses` that accept node ports: ranges, and the words primary, localhost and all; default: primary in mode nftables, all in mode iptables")
	f.assign(name, func(v *Values) { v.nodePortAddresses = value[[]string]{*is, "--" + name} })
}

func (f *Flags) booleans() {
	all := f.set.Bool("masquerade-all", false, "rewrite the source of everything that goes to a cluster IP")
	f.assignSections("masquerade-all", func(s *section, where string) { s.masqueradeAll = value[bool]{*all, where} })
	localhost := f.set.Bool(flagLocalhostNodePorts, true, "serve node ports on 127.0.0.0/8 too; of mode iptables")
	f.assign(flagLocalhostNodePorts, func(v *Values) { v.localhostNodePorts = value[bool]{*localhost, "--" + flagLocalhostNodePorts} })
}

// The flags of mode iptables alone.
const (
	flagMasqueradeBit      = "iptables-masquerade-bit"
	flagLocalhostNodePorts = "iptables-localhost-nodeports"
)

func (f *Flags) numbers() {
	bit := f.set.Int(flagMasqueradeBit, 14, "the `bit` of the packet mark that asks for masquerading, 0 to 31; of mode iptables")
	f.assign(flagMasqueradeBit, func(v *Values) { v.iptables.masqueradeBit = value[int]{*bit, "--" + flagMasqueradeBit} })
	period := func(name string, def time.Duration, of func(*section) *value[time.Duration], usage string) {
		is := f.set.Duration(name, def, usage+", in every mode")
		f.assignSections(name, func(s *section, where string) { *of(s) = value[time.Duration]{*is, where} })
	}
	period("iptables-sync-period", 30*time.Second, func(s *section) *value[time.Duration] { return &s.syncPeriod },
		"how often the kernel's rules are read back and repaired")
	period("iptables-min-sync-period", time.Second, func(s *section) *value[time.Duration] { return &s.minSyncPeriod },
		"the longest pause between two writes to the kernel")
}
