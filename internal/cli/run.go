package cli

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/internal/app"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this kernel as a cluster, or a folder of manifests, says",
		Long: `Run writes the kernel's rules for the Services of a cluster and keeps them up to date. It runs on a node in the place of
kube-proxy, with kube-proxy's flags and configuration file. It asks the API server that --kubeconfig names, or in a pod the
one of its cluster. With --manifests it needs no cluster, and reads Services from files.

Objects, manifests and the configuration file may change at any time, and rules that somebody else removes come back. It
needs root. Rules stay when it stops, so that connections go on; "sluice cleanup" removes them. Only one instance can run in
a network namespace.

A flag that is given wins over the configuration file; kube-proxy itself ignores most flags beside --config. Flags
of kube-proxy's that have no effect here are accepted and not listed.`,
		Example: `  sluice run --config /var/lib/kube-proxy/config.conf --hostname-override node1
  sluice run --kubeconfig /etc/kubernetes/proxy.conf --cluster-cidr 10.244.0.0/16
  sluice run --manifests /etc/sluice --cluster-cidr 10.244.0.0/16`,
		Args: none,
	}
	addDaemon(cmd)
	addVersion(cmd)
	groupFlags(cmd, daemonGroups)
	return cmd
}

// newKubeProxy is what the program is under the name kube-proxy: `sluice run`, so that a node's start-up files need not
// change.
func newKubeProxy() *cobra.Command {
	cmd := newRun()
	cmd.Use = "kube-proxy"
	cmd.Short = "Sluice in the place of kube-proxy"
	cmd.Long = `This is Sluice under the name of kube-proxy, and takes its flags and its configuration file. What differs:

- A flag that is given wins over the configuration file; kube-proxy itself ignores most flags beside --config.
- Without a mode it is nftables where the kernel can do it, and else iptables.
- Flags that have no effect here are accepted and not listed. docs/configuration.md has them all, with the reasons.

Under its own name the program can do more: "sluice --help".`
	cmd.Example = "  kube-proxy --config /var/lib/kube-proxy/config.conf --hostname-override node1"
	return cmd
}

// addDaemon declares the flags of the daemon, and of the errands that it can do instead.
func addDaemon(cmd *cobra.Command) {
	in := addInput(cmd, "how to do it: nftables, iptables, ipvs or userspace; default: nftables where the kernel can, else iptables", ruleModes...)
	in.config.Daemon()
	fs := cmd.Flags()
	cleanup := fs.Bool("cleanup", false, `do what "sluice cleanup" does, and end`)
	takeOver := fs.Bool("take-over", false, "take the place of the sluice that runs here: its listening sockets come over, and it ends when what it relays has")
	initOnly := fs.Bool("init-only", false, "set the machine up, which takes more rights than the rest, and end")
	writeTo := fs.String("write-config-to", "", "write the configuration that is in force to this `file`, and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *cleanup {
			return in.cleanup(cmd, app.CleanupOptions{})
		}
		input, err := in.read(cmd)
		if err != nil {
			return err
		}
		if *writeTo != "" {
			return app.WriteConfig(input.Config, *writeTo)
		}
		log := newLog(cmd.ErrOrStderr(), input.Config.Log)
		if *initOnly {
			return app.SetUpMachine(cmd.Context(), input, log.Logger)
		}
		d := app.Daemon{Input: input, Log: log, TakeOver: *takeOver, Flags: func() map[string]string { return values(fs) }}
		if in.config.File != "" {
			d.Reload = in.config.Watch
		}
		// Verbs that end by themselves die of a signal as programs do. This one ends in order, and dies of the second.
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		return d.Run(ctx)
	}
}

// values are all flags as they are.
func values(fs *pflag.FlagSet) map[string]string {
	all := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { all[f.Name] = f.Value.String() })
	return all
}
