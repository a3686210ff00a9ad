package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
	"sluice/internal/config"
)

func newCleanup() *cobra.Command {
	var o app.CleanupOptions
	in := &input{}
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every trace of Sluice from this kernel",
		Long: `Cleanup removes what Sluice and kube-proxy leave, in every mode: tables of nftables; in both variants of iptables, chains and
the jumps to them; and virtual servers with their device and ipsets. It prints what it removed. Rules of others stay. So does
KUBE-FIREWALL where kubelet is at work, which shares it; elsewhere route_localnet, which node ports on localhost need, is set
back to 0. It refuses to work while "sluice run" does. Open connections go on, except those through virtual servers, which end.

Virtual servers of others stay. Those at addresses of kube-ipvs0 are Sluice's or kube-proxy's, unless the configuration
excludes them.

With --keep-kube-proxy it removes only what kube-proxy does not know: use it where kube-proxy works again.`,
		Example: `  sudo sluice cleanup
  sudo sluice cleanup --config /var/lib/kube-proxy/config.conf
  sudo sluice cleanup --keep-kube-proxy`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return in.cleanup(cmd, o)
		},
	}
	in.config = config.NewCleanupFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.KeepKubeProxy, "keep-kube-proxy", false, "spare what kube-proxy may be using: the KUBE- chains of iptables, and its own tables of nftables")
	return cmd
}

// cleanup removes all but what the configuration excludes.
func (in *input) cleanup(cmd *cobra.Command, o app.CleanupOptions) error {
	input, err := in.read(cmd)
	if err != nil {
		return err
	}
	o.ExcludeCIDRs = input.Config.IPVS.ExcludeCIDRs
	return app.Cleanup(cmd.Context(), o, cmd.OutOrStdout())
}
