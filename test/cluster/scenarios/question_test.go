package scenarios

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/test/cluster"
)

// question is a step about connections, for all nodes that it is about.
type question struct {
	clients []string // pod, node, outside, or pod/NAME
	// host is a Service, for its cluster IPs; node, node4 or node6 for the node's own addresses; or an address.
	host     string
	port     uint16
	protocol model.Protocol
	nodes    []*cluster.Proxy
	want     []string
}

// parseQuestion reads
//
//	CLIENT[,CLIENT] HOST:PORT/PROTOCOL [on NODE] = ANSWER
//
// ANSWER is reject, drop or unhandled, or the pods that are to answer, all of them: by NAME or by LABEL=VALUE, either
// with @here for those of the node that is asked, and "masquerade=yes" or "masquerade=no" for whether they see an
// address of the node or the client's own.
func (p *player) parseQuestion(t *testing.T, args []string) (q question) {
	t.Helper()
	i := slices.Index(args, "=")
	if i < 2 {
		i = len(args)
	} else {
		q.want = args[i+1:]
	}
	q.nodes, args = p.on(t, args[:i])
	if len(args) != 2 {
		t.Fatalf("%q: want CLIENTS and an address", args)
	}
	q.clients = strings.Split(args[0], ",")
	to, protocol, _ := strings.Cut(args[1], "/")
	at := strings.LastIndexByte(to, ':')
	var err error
	if q.protocol, err = model.ParseProtocol(protocol); err != nil || at < 0 {
		t.Fatalf("%q: want HOST:PORT/PROTOCOL: %v", args[1], err)
	}
	q.host, q.port = to[:at], portNumber(t, to[at+1:])
	return q
}

// connection is one client, one address and one node.
type connection struct {
	node   *cluster.Node
	client string
	host   *lab.Host
	lab.Dial
}

func (c connection) String() string {
	return fmt.Sprintf("%s by %s to %s/%s", c.client, c.node.Name, c.To, c.Protocol)
}

// connections are all that a question is about. The network hands the address to the node that is asked.
func (p *player) connections(t *testing.T, q question) (all []connection) {
	t.Helper()
	for _, proxy := range q.nodes {
		for _, a := range p.addresses(t, q.host, proxy.Node) {
			for _, client := range q.clients {
				c := connection{node: proxy.Node, client: client, Dial: lab.Dial{To: netip.AddrPortFrom(a, q.port), Protocol: q.protocol}}
				c.host, c.From = p.client(t, client, proxy.Node, model.FamilyOf(a))
				all = append(all, c)
			}
		}
	}
	return all
}

// addresses are those that a host stands for on a node.
func (p *player) addresses(t *testing.T, host string, node *cluster.Node) (all []netip.Addr) {
	t.Helper()
	own := map[string][]netip.Addr{
		"node": node.Addresses, "node4": {node.Address(model.IPv4)}, "node6": {node.Address(model.IPv6)},
	}
	if own[host] != nil {
		return own[host]
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{a}
	}
	s, err := p.Client.CoreV1().Services(p.name).Get(t.Context(), host, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range s.Spec.ClusterIPs {
		all = append(all, netip.MustParseAddr(ip))
	}
	return all
}

// client is the machine and the address of a client that is, or that comes by, a node.
func (p *player) client(t *testing.T, name string, node *cluster.Node, f model.Family) (*lab.Host, netip.Addr) {
	t.Helper()
	switch name {
	case "pod":
		return node.Pods, node.Pods.Address(f)
	case "node":
		return node.Host, netip.Addr{}
	case "outside":
		return p.Clients(), p.Clients().Address(f)
	}
	pod := p.Pod(t, p.name, strings.TrimPrefix(name, "pod/"))
	return pod.Host, pod.Address(f)
}

// wanted is an answer for one node.
type wanted struct {
	action     plan.Action
	pods       []string // as nameOf has them
	masquerade string   // yes, no, or empty: it does not matter
}

func (p *player) wanted(t *testing.T, words []string, node *cluster.Node) (w wanted) {
	t.Helper()
	w.action = plan.Forward
	for _, word := range words {
		if m, ok := strings.CutPrefix(word, "masquerade="); ok {
			w.masquerade = m
			continue
		}
		for a := plan.Unhandled; a <= plan.Drop; a++ {
			if a != plan.Forward && a.String() == word {
				w.action = a
			}
		}
		if w.action == plan.Forward {
			w.pods = append(w.pods, p.pods(t, word, node)...)
		}
	}
	if w.action == plan.Forward && len(w.pods) == 0 {
		t.Fatalf("%q: there are no such pods", words)
	}
	return w
}

// pods are those that a word means. Those that are being deleted have to be named.
func (p *player) pods(t *testing.T, word string, node *cluster.Node) (names []string) {
	t.Helper()
	word, here := strings.CutSuffix(word, "@here")
	list, err := p.Client.CoreV1().Pods(p.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		key, value, labelled := strings.Cut(word, "=")
		fits := pod.Name == word || labelled && pod.Labels[key] == value && pod.DeletionTimestamp == nil
		if fits && (!here || pod.Spec.NodeName == node.Name) {
			names = append(names, nameOfPod(pod))
		}
	}
	return names
}

// nameOfPod is the pod as nameOf has it.
func nameOfPod(pod v1.Pod) string {
	if pod.Spec.HostNetwork {
		return pod.Spec.NodeName
	}
	return pod.Namespace + "/" + pod.Name
}

// nameOf is who answered: a pod, or the node on whose network it is.
func (p *player) nameOf(a netip.Addr) string {
	for _, proxy := range p.proxies {
		if slices.Contains(proxy.Node.Addresses, a) {
			return proxy.Node.Name
		}
	}
	return p.PodAt(a)
}
