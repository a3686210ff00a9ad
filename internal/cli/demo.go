package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sluice/internal/app"
	"sluice/internal/lab/demo"
)

func newDemo() *cobra.Command {
	var o demo.Options
	var noColor bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show Services at work in a throw-away cluster",
		Long: `Demo makes a small cluster of network namespaces, runs the real daemon on its node, and tells what happens: how
connections spread, which rules a packet meets, what comes of a pod that fails and of rules that somebody deletes, and
what a kill -9 does to connections. It leaves the machine as it was.

It needs no root, and no other program except in mode iptables, or where the kernel has no nf_tables. Mode ipvs needs a
kernel with ip_vs, and root before Linux 6.10.

Exit status: 0 if everything was as it should be; 1 if not, or if this kernel cannot do the mode.`,
		Example: `  sluice demo
  sluice demo --mode userspace
  sluice demo --keep`,
		Args: none,
	}
	o.Choose, o.Try = app.ChooseMode, app.TryMode
	cmd.Flags().StringVar(&o.Mode, "mode", "", "how the daemon does its work: "+choice(ruleModes)+"; default: nftables where the kernel can, else iptables")
	complete(cmd, "mode", ruleModes)
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running after the story, until Ctrl-C")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "print without colours")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Mode != "" && !slices.Contains(ruleModes, o.Mode) {
			return app.WrongInput(fmt.Errorf("--mode: %q: want %s", o.Mode, choice(ruleModes)))
		}
		o.Out = cmd.OutOrStdout()
		out, ok := o.Out.(*os.File)
		o.Color = !noColor && os.Getenv("NO_COLOR") == "" && ok && term.IsTerminal(int(out.Fd()))
		status, err := demo.Run(cmd.Context(), o)
		if status != 0 {
			if err != nil {
				cmd.PrintErrln("sluice:", err)
			}
			return exit(status)
		}
		return err
	}
	return cmd
}
