package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  sluice version
  sluice version -o json`,
		Args: none,
	}
	output := addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return app.PrintVersion(cmd.OutOrStdout(), *output)
	}
	return cmd
}

// addVersion gives a command kube-proxy's flag --version, which wins over all that the command does.
func addVersion(cmd *cobra.Command) {
	version := cmd.Flags().String("version", "false", "print the version and end; raw: as data")
	cmd.Flags().Lookup("version").NoOptDefVal = "true"
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch *version {
		case "false":
			return run(cmd, args)
		case "true":
			return app.PrintVersion(cmd.OutOrStdout(), app.Text)
		case "raw":
			return app.PrintVersion(cmd.OutOrStdout(), app.JSON)
		default:
			return app.WrongInput(fmt.Errorf("--version: %q: want true, false or raw", *version))
		}
	}
}
