package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newCleanup() *cobra.Command {
	var o app.CleanupOptions
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every trace of Sluice from this kernel",
		Long: `Cleanup removes what Sluice and kube-proxy leave, in every mode: the tables of nftables, and in both variants of iptables
the chains and the jumps to them. It tells what it removed. Rules of others stay, and so does KUBE-FIREWALL where kubelet is
at work, which shares it; elsewhere route_localnet, which node ports on localhost need, is set back to 0. It refuses to work
while "sluice run" does. Connections that are open go on until they end.

With --keep-kube-proxy it removes only what kube-proxy does not know: use it where kube-proxy works again.`,
		Example: `  sudo sluice cleanup
  sudo sluice cleanup --keep-kube-proxy`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Cleanup(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.KeepKubeProxy, "keep-kube-proxy", false, "spare what kube-proxy may be using: the KUBE- chains of iptables, and its own tables of nftables")
	return cmd
}
