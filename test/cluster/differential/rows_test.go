package differential_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unseen are the rows that this cluster cannot show, by the reason why.
func unseen() map[string][]string {
	return map[string][]string{
		"the configuration is the same in all runs, and each node has one address of each family": {
			"`nodePortAddresses: [primary]`, and the node has no address of a family",
			"`nodePortAddresses` lists no range of a family",
			"No mode is given",
			"Node addresses or pod CIDRs change, or the Node is deleted",
			"A node port of a Service without endpoints, at an address that is not in `nodePortAddresses`",
			"Localhost node ports with a list of addresses",
			"Node ports on loopback addresses, where `nodePortAddresses` names these",
			"The same, with the feature gate KubeProxyNFTablesLocalhostNodePorts",
			"Node ports on loopback addresses that are there no longer",
			"route_localnet cannot be set, as where /proc/sys is read-only",
		},
		"the network carries no packets to loopback addresses": {
			"Packet from outside to 127.0.0.0/8",
			"Packet from elsewhere to 127.0.0.0/8 and a node port",
		},
		"the API server gives out numbers and addresses, and none of them is the node's": {
			"`healthCheckNodePort` that equals another Service's node port",
			"Other ports of a cluster IP that is one of the node's addresses, as an earlier ipvs mode leaves them",
			"An address in a ServiceCIDR that is the node's own, or a Service's external or load balancer IP",
			"A ServiceCIDR of all addresses",
			"Address of a Service that is also one of the node's, same number as another Service's node port",
			"Cluster IP that is one of the node's addresses, as an earlier ipvs mode leaves them, without endpoints",
			"Addresses of the node, and ServiceCIDRs, that come and go",
		},
		"the same under another name": {
			"Source ranges and no endpoints",
		},
		"it is about rules, or about what a proxy needs, and not about where a connection goes": {
			"Order of Services in a chain",
			"Counters of dropped and accepted packets",
			"Our jumps in the kernel's chains out of order, or a rule or chain deleted by hand",
			"A rule that iptables-restore refuses",
			"Digits of probabilities",
			"KUBE-FIREWALL after `cleanup`",
			"A chain of ours that something else leads to, seen in iptables-save or not",
			"Tables",
			"How they are written",
			"What the kernel must have",
			"A start",
			"New connections",
			"How many there can be",
		},
		"it takes packets, or clients, of kinds that there are none of here": {
			"Packets that connection tracking calls invalid",
			"Session affinity",
			"Priority of a connection's first packet (`SO_PRIORITY`, `meta priority`)",
		},
	}
}

// Every row of docs/differences.md about packets is one that findings are held against, or it is said why not.
func TestEveryRowIsAccountedFor(t *testing.T) {
	known := map[string]bool{}
	for _, i := range differences() {
		known[i.row] = true
	}
	for _, list := range unseen() {
		for _, row := range list {
			known[row] = true
		}
	}
	written := rows(t, "In every mode (package plan)", "iptables mode", "nftables mode")
	for _, row := range written {
		if !known[row] {
			t.Errorf("docs/differences.md says %q, which is neither in differences nor in unseen", row)
		}
	}
	for row := range known {
		if !slices.Contains(written, row) {
			t.Errorf("docs/differences.md does not say %q", row)
		}
	}
}

// rows are the first cells of the tables in some sections of the list.
func rows(t *testing.T, sections ...string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if !slices.Contains(sections, title) {
			continue
		}
		for line := range strings.Lines(body) {
			if cells := strings.Split(line, "|"); len(cells) > 3 {
				list = append(list, strings.TrimSpace(cells[1]))
			}
		}
	}
	return slices.DeleteFunc(list, func(row string) bool { return row == "What" || strings.HasPrefix(row, "---") })
}
