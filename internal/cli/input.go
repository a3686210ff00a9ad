package cli

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"sluice/internal/app"
	"sluice/internal/config"
)

// input is the flags of every verb that makes a plan.
type input struct {
	manifests []string
	addresses []string
	config    *config.Flags
}

// addInput declares the flags; modes says what --mode takes.
func addInput(cmd *cobra.Command, modes string) *input {
	in := &input{}
	fs := cmd.Flags()
	fs.StringArrayVarP(&in.manifests, "manifests", "f", nil, "read Services, EndpointSlices, Pods and Nodes from this `path`: a file or a folder, or - for standard input; repeatable")
	in.config = config.NewFlags(fs)
	in.config.Mode(modes)
	return in
}

// addAddresses declares --node-address, for verbs that do not ask the kernel.
func (in *input) addAddresses(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&in.addresses, "node-address", nil, "an `address` on an interface of this node, beside those of its Node object; repeatable")
}

// read is what the flags say. Warnings go to standard error.
func (in *input) read(cmd *cobra.Command) (app.Input, error) {
	cfg, warnings, err := in.config.Load()
	for _, w := range warnings {
		cmd.PrintErrln("warning:", w)
	}
	if err != nil {
		return app.Input{}, app.WrongInput(err)
	}
	out := app.Input{Manifests: in.manifests, Config: cfg, Stdin: cmd.InOrStdin(), Messages: cmd.ErrOrStderr()}
	for _, s := range in.addresses {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return out, app.WrongInput(fmt.Errorf("--node-address %q: want an IP address", s))
		}
		out.NodeAddresses = append(out.NodeAddresses, a.Unmap())
	}
	return out, nil
}

// format is the flag -o.
type format app.Format

func addFormat(cmd *cobra.Command) *app.Format {
	f := format(app.Text)
	cmd.Flags().VarP(&f, "output", "o", "how to print: text, json or yaml")
	return (*app.Format)(&f)
}

// String is the value of the flag.
func (f *format) String() string { return string(*f) }

// Type is the word for a value in help.
func (f *format) Type() string { return "format" }

// Set takes text, json or yaml.
func (f *format) Set(s string) error {
	switch app.Format(s) {
	case app.Text, app.JSON, app.YAML:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("want text, json or yaml")
}
