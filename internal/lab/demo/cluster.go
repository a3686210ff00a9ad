package demo

import (
	"fmt"
	"net/netip"

	"sluice/internal/lab"
)

// The addresses of the story. Those of the Services, their pods and the node port are in the examples.
const (
	nodeName   = "node1"
	clientName = "client"
	shellName  = "shell"

	nodeAddress   = "192.168.10.11"
	clientAddress = "203.0.113.7"
	shellAddress  = "192.168.125.10"
	clusterCIDR   = "192.168.125.0/24"

	registryAddress = "10.10.10.2:22"
	mysqlAddress    = "10.254.162.44:3306"
	mysqlNodePort   = nodeAddress + ":30964"
)

// podAddresses are what the lab gives to the pods of each workload.
func podAddresses() map[string][]netip.Addr {
	return map[string][]netip.Addr{
		"registry": {netip.MustParseAddr("172.17.0.5")},
		"mysql":    {netip.MustParseAddr("192.168.125.129"), netip.MustParseAddr("192.168.125.131")},
	}
}

func topology(pods []*pod) lab.Topology {
	machine := func(name, address string) lab.Machine {
		return lab.Machine{Name: name, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	t := lab.Topology{
		Node:    machine(nodeName, nodeAddress),
		Pods:    []lab.Machine{machine(shellName, shellAddress)},
		Outside: []lab.Machine{machine(clientName, clientAddress)},
	}
	for _, p := range pods {
		t.Pods = append(t.Pods, machine(p.name, p.address.String()))
	}
	return t
}

// picture shows the topology.
func picture(pods []*pod) string {
	text := fmt.Sprintf("%s %s ── %s %s", clientName, clientAddress, nodeName, nodeAddress)
	indent := len([]rune(text)) + 1
	text += fmt.Sprintf(" ─┬─ %-11s %-16s a pod to connect from\n", shellName, shellAddress)
	for i, p := range pods {
		branch := "├"
		if i == len(pods)-1 {
			branch = "└"
		}
		text += fmt.Sprintf("%*s%s─ %-11s %-16s behind %s\n", indent+1, "", branch, p.name, p.address, p.service)
	}
	return text
}
