package cli

import (
	"github.com/spf13/cobra"

	"sluice/internal/app"
)

func newTrace() *cobra.Command {
	var from, to, via, iface string
	var o app.TraceOptions
	cmd := &cobra.Command{
		Use:   "trace --from ADDRESS --to ADDRESS:PORT/PROTOCOL",
		Short: "Tell what happens to a packet, step by step",
		Long: `Trace follows the first packet of a new connection and says where it ends: at which endpoints and how likely each is,
refused, dropped, or left to plain routing.

--mode plan answers from the plan; the other modes walk the rules that the manifests make. --live walks the rules in this
kernel (root): those of the daemon's mode if one runs, else the table of mode nftables if there is one, else those of
iptables, whoever made them. Other tables, such as that of kube-proxy's mode nftables or of a firewall, are not followed:
where the packet passes one that may do something to it, the answer is not certain, and notes name the chains. --dump walks
the rules in a file that iptables-save or ip6tables-save wrote. Neither needs manifests, but the node's addresses matter:
--live asks the kernel for them; for --dump give --node-address or a Node object. A match that the walk cannot decide leads
both ways, and a step says so.`,
		Example: `  sluice trace --manifests examples/registry.yaml --node node1 --from 172.17.0.9 --to 10.10.10.2:22
  sluice trace --manifests examples/mysql-service.yaml --node node1 --from 203.0.113.7 --to 192.168.10.11:30964/TCP -o json
  sudo sluice trace --live --from 203.0.113.7 --to 10.96.0.10:53/udp
  sluice trace --dump saved.txt --node-address 192.168.10.11 --from 203.0.113.7 --to '[fd00:96::10]:53/UDP'`,
		Args: none,
	}
	in := addInput(cmd, "what to walk: nftables (default), iptables, ipvs, userspace or plan; default with --live: what is in this kernel", allModes...)
	in.addAddresses(cmd)
	output := addFormat(cmd)
	fs := cmd.Flags()
	fs.StringVar(&from, "from", "", "the packet's source `address`")
	fs.StringVar(&to, "to", "", "its `destination`: ADDRESS:PORT/PROTOCOL, IPv6 in brackets; without a protocol it is TCP")
	fs.StringVar(&via, "via", "", "`how` it comes: forward (from the network) or local (from a process here); default: local for an address of the node")
	fs.StringVar(&iface, "interface", "", "the `name` of the interface it comes in by")
	fs.StringVar(&o.Dump, "dump", "", "walk the rules in this `file`, written by iptables-save or ip6tables-save")
	fs.BoolVar(&o.Live, "live", false, "walk the rules in this kernel")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := app.ParseQuestion(from, to, via, iface)
		if err != nil {
			return err
		}
		input, err := in.read(cmd)
		if err != nil {
			return err
		}
		o.Format = *output
		return end(app.Trace(cmd.Context(), input, q, o, cmd.OutOrStdout()))
	}
	return cmd
}
