package cli

import (
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
