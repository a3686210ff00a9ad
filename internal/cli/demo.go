package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sluice/internal/app"
	"sluice/internal/config"
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
what a kill -9 does to connections. It needs no root, and in mode nftables no other program, and leaves the machine as it
was.

Exit status: 0 if everything was as it should be.`,
		Example: `  sluice demo
  sluice demo --mode iptables
  sluice demo --keep`,
		Args: none,
	}
	o.Choose = app.ChooseMode
	modes := []string{config.ModeNFTables, config.ModeIPTables}
	cmd.Flags().StringVar(&o.Mode, "mode", "", "how the daemon does its work: nftables or iptables (default: nftables where the kernel can do it)")
	complete(cmd, "mode", modes)
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running after the story, until Ctrl-C")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "print without colours")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Mode != "" && !slices.Contains(modes, o.Mode) {
			return app.WrongInput(fmt.Errorf("--mode: %q: want nftables or iptables", o.Mode))
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
