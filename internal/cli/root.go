package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sluice/internal/app"
)

// Exit statuses.
const (
	statusBadNews = 1
	statusUsage   = 2
)

// exit is a status to end with, where everything has been said already.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the command line args and returns the exit status.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, newRoot(), args, stdin, stdout, stderr)
}

// KubeProxy is Main for a program that goes by the name of kube-proxy: all that it does is what kube-proxy does.
func KubeProxy(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newKubeProxy()
	silence(cmd)
	return execute(ctx, cmd, args, stdin, stdout, stderr)
}

func execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var status exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	_, _ = fmt.Fprintln(stderr, "sluice:", err)
	if errors.Is(err, app.ErrInput) {
		return statusUsage
	}
	return statusBadNews
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Make Service addresses work on a Linux node",
		Long: `Sluice makes Service addresses work on a Linux node: a connection to a cluster IP, node port, external IP or load
balancer IP reaches one of the endpoints behind it. It does the job of kube-proxy, and does it on a plain Linux machine
too, from the same YAML, with no cluster.

Exit status: 0 done; 1 the answer is bad news (a difference was found, an object was wrong and is left out) or the work
failed; 2 wrong usage or unreadable input.`,
		Example: `  sluice demo
  sluice render --manifests examples/registry.yaml --node node1
  sluice run --manifests /etc/sluice`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return app.WrongInput(fmt.Errorf("unknown command %q; sluice --help lists them", args[0]))
			}
			return cmd.Help()
		},
	}
	silence(root)
	addVersion(root)
	root.AddCommand(newRun(), newRender(), newDiff(), newTrace(), newStatus(), newCleanup(), newDemo(), newVersion())
	return root
}

// silence leaves it to execute to tell errors, and makes those of flags wrong usage.
func silence(cmd *cobra.Command) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return app.WrongInput(err) })
}

// none takes no arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return app.WrongInput(fmt.Errorf("%s takes no arguments, but there is %q", cmd.CommandPath(), args[0]))
	}
	return nil
}

// end turns the outcome of a verb into its exit status.
func end(o app.Outcome, err error) error {
	if err == nil && o == app.BadNews {
		return exit(statusBadNews)
	}
	return err
}
