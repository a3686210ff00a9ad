package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newStatus() *cobra.Command {
	var o app.StatusOptions
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show what the running daemon does, per Service port",
		Long: `Status asks the "sluice run" of this network namespace how far each Service port is in the kernel:

  pending  planned, and about to be written
  done     the kernel is as planned
  error    the kernel refused it; its words are below the table, and it is tried again

With NAME it shows one Service only. ENDPOINTS are those that connections go to, CONNECTIONS the new ones counted so far, by
a mode that counts them, and AGE is for how long the port has been in its state. Only root and the user that runs the
daemon may ask.

Exit status: 0 all is well; 1 a Service port is in state error, changes do not reach the kernel, the API server has not been
read yet, or no daemon runs.`,
		Example: `  sudo sluice status
  sudo sluice status -n kube-system kube-dns
  sudo sluice status -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return app.WrongInput(fmt.Errorf("%s takes one NAME at most, but there is %q", cmd.CommandPath(), args))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "only the Services of this `namespace`; default: all")
	format := addFormat(cmd, app.Wide)
	completeStatus(cmd, &o)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.Service = args[0]
		}
		o.Format = *format
		return end(app.Status(o, cmd.OutOrStdout()))
	}
	return cmd
}

// completeStatus has the shell offer the names that the daemon has.
func completeStatus(cmd *cobra.Command, o *app.StatusOptions) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_, services := app.StatusNames(o.Namespace)
		return services, cobra.ShellCompDirectiveNoFileComp
	}
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		namespaces, _ := app.StatusNames("")
		return namespaces, cobra.ShellCompDirectiveNoFileComp
	}) // the flag is there
}
