package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newDiff() *cobra.Command {
	var o app.DiffOptions
	cmd := &cobra.Command{
		Use:   "diff --manifests PATH",
		Short: "Show what would change in this kernel",
		Long: `Diff compares the rules that these manifests make with those in this kernel, which takes root, or with those in files
that iptables-save and ip6tables-save wrote. It writes nothing. Lines with - would go, lines with + would come. In mode
iptables, a chain of somebody else is shown if a jump from it to a chain of ours would change.

Exit status: 0 nothing would change, 1 something would.`,
		Example: `  sudo sluice diff --manifests /etc/sluice --cluster-cidr 10.244.0.0/16
  iptables-save > now.txt; sluice diff --manifests /etc/sluice --dump now.txt`,
		Args: none,
	}
	in := addInput(cmd, "whose rules to compare: nftables, iptables, ipvs or userspace; default: as for run, and iptables with --dump", ruleModes...)
	in.addAddresses(cmd)
	cmd.Flags().StringVar(&o.Dump, "dump", "", "compare with this `file`, written by iptables-save or ip6tables-save")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		input, err := in.read(cmd)
		if err != nil {
			return err
		}
		return end(app.Diff(cmd.Context(), input, o, cmd.OutOrStdout()))
	}
	return cmd
}
