package bench

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/testkit/crowd"
)

// The Services of a way: several of TCP, since none may have all connections that there may be, and one of UDP.
const (
	wayServices = 10
	wayUDP      = wayServices // its number
)

// wayClients are the client's addresses, since none may have all sessions that there may be.
const wayClients = 10

// way is a client and a server on one node, what leads from one to the other, and what was found out about it.
type way struct {
	*testing.B
	name     string
	lab      *lab.Lab
	daemon   *watched // nil: none
	tcp, udp netip.AddrPort
	// Sockets of the server, for those who serve by themselves.
	listener, datagrams int
	found               map[string][]float64 // by row
}

// newWay has a daemon of a mode lead from client to server; none if that is empty. Settings are for the section
// sluice.userspace of its configuration.
func newWay(b *testing.B, mode, settings string) *way {
	b.Helper()
	l, err := lab.Up(lab.Topology{
		Node: lab.Machine{Name: "node", Addresses: []netip.Addr{netip.MustParseAddr("192.168.10.11")}},
		Pods: []lab.Machine{
			{Name: "client", Addresses: clientAddrs()},
			{Name: "server", Addresses: []netip.Addr{wayEndpoint}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	w := &way{
		B: b, name: "direct", lab: l, listener: -1, datagrams: -1, found: map[string][]float64{},
		tcp: netip.AddrPortFrom(wayEndpoint, crowd.TargetPort), udp: netip.AddrPortFrom(wayEndpoint, crowd.TargetPort),
	}
	if mode != "" {
		w.lead(mode, settings)
	}
	return w
}

var wayEndpoint = netip.MustParseAddr("10.244.1.200")

func clientAddrs() (all []netip.Addr) {
	for i := range wayClients {
		all = append(all, netip.AddrFrom4([4]byte{10, 244, 1, byte(1 + i)}))
	}
	return all
}

// lead starts the daemon.
func (w *way) lead(mode, settings string) {
	w.Helper()
	f, conf := &folder{path: w.TempDir()}, filepath.Join(w.TempDir(), "config.yaml")
	write(w.B, conf, fmt.Sprintf("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: %s\n"+
		"sluice: {userspace: {%s}}\n", mode, settings))
	write(w.B, filepath.Join(f.path, "services.yaml"), wayObjects())
	w.name, w.daemon = mode, &watched{B: w.B, folder: f, node: w.lab.Node(), flags: []string{"--config", conf}}
	w.tcp = netip.AddrPortFrom(crowd.ClusterIP(0), crowd.Port)
	w.udp = netip.AddrPortFrom(crowd.ClusterIP(wayUDP), crowd.Port)
	w.daemon.start()
	w.daemon.rest()
}

// end lets go of all.
func (w *way) end() {
	w.Helper()
	if w.daemon != nil {
		w.daemon.Stop()
	}
	for _, fd := range []int{w.listener, w.datagrams} {
		if fd >= 0 {
			_ = syscall.Close(fd) // nothing is lost with it
		}
	}
	if err := w.lab.Close(); err != nil {
		w.Error(err)
	}
}

// modesBeside are the ways that are compared.
func modesBeside() []string { return []string{"", config.ModeNFTables, config.ModeUserspace} }

func wayObjects() string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Node\nmetadata: {name: node}\n" +
		"status: {addresses: [{type: InternalIP, address: 192.168.10.11}]}\n")
	for i := range wayServices + 1 {
		protocol := "TCP"
		if i == wayUDP {
			protocol = "UDP"
		}
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Service
metadata: {name: service-%[1]d}
spec: {clusterIP: %[2]s, ports: [{name: p, port: %[3]d, protocol: %[4]s, targetPort: %[5]d}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: service-%[1]d, labels: {kubernetes.io/service-name: service-%[1]d}}
addressType: IPv4
ports: [{name: p, port: %[5]d, protocol: %[4]s}]
endpoints: [{addresses: [%[6]s], nodeName: node}]
`, i, crowd.ClusterIP(i), crowd.Port, protocol, crowd.TargetPort, wayEndpoint)
	}
	return text.String()
}
