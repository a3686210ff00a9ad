package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newCleanup() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every trace of Sluice from this kernel",
		Long: `Cleanup removes the chains of a Service proxy and the jumps to them, of both families and of both variants of iptables.
They are kube-proxy's chains as well. Rules of others stay, and so does KUBE-FIREWALL where kubelet is at work, which shares
it; elsewhere route_localnet, which node ports on localhost need, is set back to 0. It refuses to work while "sluice run"
does. Connections that are open go on until they end.`,
		Example: `  sudo sluice cleanup`,
		Args:    none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Cleanup(cmd.Context(), cmd.OutOrStdout())
		},
	}
}
