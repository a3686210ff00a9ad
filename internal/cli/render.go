package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newRender() *cobra.Command {
	var family string
	cmd := &cobra.Command{
		Use:   "render --manifests PATH",
		Short: "Print the rules that manifests make",
		Long: `Render prints what "sluice run" would write for these manifests. It needs no privilege.

--mode nftables prints one table for "nft -f", for both families.

--mode iptables prints input for iptables-restore and ip6tables-restore. Either takes one family only, so --family
chooses it; without --family it is IPv4, and IPv6 where all Services are IPv6. If there are Services of the other family
as well, a line on standard error says so.

--mode plan prints the plan that the rules are made of: for each Service port its frontends, where each kind of client
goes, and every endpoint with the rule that left it out. -o json and -o yaml are for this mode.`,
		Example: `  sluice render --manifests examples/registry.yaml --node node1 | nft --check -f -
  sluice render --manifests examples/dual-stack.yaml --node node1 --mode iptables --family ipv6 | ip6tables-restore --test
  sluice render --manifests examples/registry.yaml --node node1 --mode plan`,
		Args: none,
	}
	in := addInput(cmd, "what to print: nftables (default), iptables, ipvs, userspace or plan", allModes...)
	in.addAddresses(cmd)
	output := addFormat(cmd)
	cmd.Flags().StringVar(&family, "family", "", "the `family` to print: ipv4 or ipv6; of mode iptables")
	complete(cmd, "family", []string{"ipv4", "ipv6"})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		input, err := in.read(cmd)
		if err != nil {
			return err
		}
		return end(app.Render(input, app.RenderOptions{Family: family, Format: *output}, cmd.OutOrStdout()))
	}
	return cmd
}
