package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

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

// ruleModes are the modes that have rules, the default one first; allModes have the plan beside them.
var (
	ruleModes = []string{config.ModeNFTables, config.ModeIPTables, config.ModeIPVS, config.ModeUserspace}
	allModes  = slices.Concat(ruleModes, []string{config.ModePlan})
)

// addInput declares the flags. usage says what --mode is for, and what it is by default; modes are those it takes.
func addInput(cmd *cobra.Command, usage string, modes ...string) *input {
	in := &input{}
	fs := cmd.Flags()
	fs.StringArrayVarP(&in.manifests, "manifests", "f", nil, "read Services, EndpointSlices, Pods and Nodes from this `path`: a file, a folder (its .yaml, .yml and .json files, and no folders below), or - for standard input; repeatable")
	in.config = config.NewFlags(fs)
	in.config.Mode(usage)
	complete(cmd, "mode", modes)
	complete(cmd, "detect-local-mode", []string{"ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"})
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
	out := app.Input{Manifests: in.manifests, Config: cfg, Warnings: warnings, Stdin: cmd.InOrStdin(), Messages: cmd.ErrOrStderr()}
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
type format struct {
	is      app.Format
	allowed []string
}

// addFormat declares -o with the formats that every verb has, and more.
func addFormat(cmd *cobra.Command, more ...app.Format) *app.Format {
	f := &format{is: app.Text}
	for _, is := range append(append([]app.Format{app.Text}, more...), app.JSON, app.YAML) {
		f.allowed = append(f.allowed, string(is))
	}
	cmd.Flags().VarP(f, "output", "o", "how to print: "+choice(f.allowed))
	complete(cmd, "output", f.allowed)
	return &f.is
}

// complete has the shell offer words for a flag.
func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// choice names words of which one is wanted.
func choice(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// String is the value of the flag.
func (f *format) String() string { return string(f.is) }

// Type is the word for a value in help.
func (f *format) Type() string { return "format" }

// Set takes a format that is allowed.
func (f *format) Set(s string) error {
	if !slices.Contains(f.allowed, s) {
		return fmt.Errorf("want %s", choice(f.allowed))
	}
	f.is = app.Format(s)
	return nil
}
