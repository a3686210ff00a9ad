package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group is flags that belong together, in a help text that is too long for one list.
type group struct {
	title string
	// flags are their names; one that ends in - stands for all that begin so.
	flags []string
}

// daemonGroups are those of the daemon, by what they are about. What none of them has comes last.
var daemonGroups = []group{
	{"Where Services come from", []string{"config", "manifests", "kubeconfig", "master", "kube-api-"}},
	{"This node and its pods", []string{"node", "hostname-override", "bind-address", "cluster-cidr", "detect-local-mode", "pod-"}},
	{"Rules", []string{"mode", "nodeport-addresses", "masquerade-all", "cluster-ip-ping", "iptables-", "ipvs-"}},
	{"Mode userspace", []string{"proxy-port-range", "userspace-"}},
	{"The machine", []string{"conntrack-", "oom-score-adj"}},
	{"Servers", []string{"healthz-bind-address", "metrics-bind-address", "bind-address-hard-fail", "profiling"}},
	{"Coming and going", []string{"take-over"}},
	{"Instead of running", []string{"cleanup", "init-only", "write-config-to", "version"}},
}

func (g group) has(flag string) bool {
	return slices.ContainsFunc(g.flags, func(name string) bool {
		return name == flag || strings.HasSuffix(name, "-") && strings.HasPrefix(flag, name)
	})
}

// helpWidth is how many columns a help text has: those of the texts around it.
const helpWidth = 120

// groupFlags makes the help of a command list its flags by groups.
func groupFlags(cmd *cobra.Command, groups []group) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		var text strings.Builder
		fmt.Fprintf(&text, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, part := range split(cmd.LocalFlags(), groups) {
			fmt.Fprintf(&text, "\n%s:\n%s", part.title, part.flags.FlagUsagesWrapped(helpWidth))
		}
		_, err := io.WriteString(cmd.OutOrStdout(), text.String())
		return err
	})
}

// part is the flags of a group.
type part struct {
	title string
	flags *pflag.FlagSet
}

// split puts each flag into the first group that has it, or into the last, of all others.
func split(flags *pflag.FlagSet, groups []group) (parts []part) {
	for _, g := range groups {
		parts = append(parts, part{g.title, pflag.NewFlagSet(g.title, pflag.ContinueOnError)})
	}
	parts = append(parts, part{"Other flags", pflag.NewFlagSet("", pflag.ContinueOnError)})
	flags.VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(groups, func(g group) bool { return g.has(f.Name) })
		if i < 0 {
			i = len(groups)
		}
		parts[i].flags.AddFlag(f)
	})
	return parts
}
