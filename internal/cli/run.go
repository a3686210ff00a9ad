package cli

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sluice/internal/app"
	"sluice/internal/config"
)

func newRun() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "run --manifests DIR",
		Short: "Keep this kernel as the manifests say",
		Long: `Run reads the manifests, makes the kernel's rules as they say, and keeps them so: files may change at any time, and rules
that somebody else removes come back. It takes root. Rules stay when it stops, so that connections go on; "sluice cleanup"
removes them. Only one instance can run in a network namespace.

Flags and configuration file are kube-proxy's. A flag that is given wins over the file; kube-proxy itself ignores most
flags beside --config.`,
		Example: `  sudo sluice run --manifests /etc/sluice --cluster-cidr 10.244.0.0/16
  sudo sluice run --manifests /etc/sluice --config kube-proxy.yaml`,
		Args: none,
	}
	in := addInput(cmd, "how to do it: nftables or iptables; default: nftables where the kernel can, else iptables", config.ModeNFTables, config.ModeIPTables)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "tell more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		input, err := in.read(cmd)
		if err != nil {
			return err
		}
		// Verbs that end by themselves die of a signal as programs do. This one ends in order, and dies of the second.
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		return app.Run(ctx, input, newLogger(cmd.ErrOrStderr(), verbose))
	}
	return cmd
}
