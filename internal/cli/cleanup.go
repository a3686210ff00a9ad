package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newCleanup() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every trace of Sluice from this kernel",
		Long: `Cleanup removes what Sluice and kube-proxy leave, in every mode: the tables of nftables, and in both variants of iptables
the chains and the jumps to them. It tells what it removed. Rules of others stay, and so does KUBE-FIREWALL where kubelet is
at work, which shares it; elsewhere route_localnet, which node ports on localhost need, is set back to 0. It refuses to work
while "sluice run" does. Connections that are open go on until they end.`,
		Example: `  sudo sluice cleanup`,
		Args:    none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Cleanup(cmd.Context(), cmd.OutOrStdout())
		},
	}
}
