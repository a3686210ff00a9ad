package ipsets

import (
	"strings"

	"sluice/internal/iptables/sets"
	"sluice/internal/model"
)

// kind is what a set is for. Each family has one set of each kind.
type kind int

// The kinds: kube-proxy's, then those of Sluice, which are there only while they have entries. Those of node ports come
// in threes, see ofProtocol.
const (
	loopBack kind = iota
	clusterIP
	externalIP
	externalIPLocal
	loadBalancer
	loadBalancerLocal
	loadBalancerFW
	loadBalancerSourceIP
	loadBalancerSourceCIDR
	nodePort
	_
	_
	nodePortLocal
	_
	_
	healthCheck
	ipvsIPs

	markAddress
	markNodePort
	_
	_
	rejectAddress
	rejectNodePort
	_
	_
	dropAddress
	dropNodePort
	_
	_
	outsideRejectAddress
	outsideRejectNodePort
	_
	_
	outsideDropAddress
	outsideDropNodePort
	_
	_
	kinds
)

const firstOfOurs = markAddress

// ofProtocol is the kind of node ports for a protocol.
func (k kind) ofProtocol(p model.Protocol) kind {
	return k + map[model.Protocol]kind{model.TCP: 0, model.UDP: 1, model.SCTP: 2}[p]
}

// protocols are those that Services have.
var protocols = [...]model.Protocol{model.TCP, model.UDP, model.SCTP}

// form is what sets of a kind look like.
type form struct {
	name    string // for IPv4, without KUBE-
	typ     sets.Type
	comment string // of the rule that asks it
	marks   bool
}

// A bitmap:port knows no SCTP, so that its node ports are in a set with the addresses of the node.
var forms = withNodePorts([kinds]form{
	loopBack:               {"LOOP-BACK", sets.HashIPPortIP, "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose", false},
	clusterIP:              {"CLUSTER-IP", sets.HashIPPort, "Kubernetes service cluster ip + port for masquerade purpose", false},
	externalIP:             {"EXTERNAL-IP", sets.HashIPPort, "Kubernetes service external ip + port for masquerade and filter purpose", false},
	externalIPLocal:        {"EXTERNAL-IP-LOCAL", sets.HashIPPort, "Kubernetes service external ip + port with externalTrafficPolicy=local", false},
	loadBalancer:           {"LOAD-BALANCER", sets.HashIPPort, "Kubernetes service lb portal", false},
	loadBalancerLocal:      {"LOAD-BALANCER-LOCAL", sets.HashIPPort, "Kubernetes service load balancer ip + port with externalTrafficPolicy=local", false},
	loadBalancerFW:         {"LOAD-BALANCER-FW", sets.HashIPPort, "Kubernetes service load balancer ip + port for load balancer with sourceRange", false},
	loadBalancerSourceIP:   {"LOAD-BALANCER-SOURCE-IP", sets.HashIPPortIP, "Kubernetes service load balancer ip + port + source IP for packet filter purpose", false},
	loadBalancerSourceCIDR: {"LOAD-BALANCER-SOURCE-CIDR", sets.HashIPPortNet, "Kubernetes service load balancer ip + port + source cidr for packet filter purpose", false},
	healthCheck:            {"HEALTH-CHECK-NODE-PORT", sets.BitmapPort, "Kubernetes health check node port", false},
	ipvsIPs:                {"IPVS-IPS", sets.HashIP, "Addresses on the ipvs interface", false},
	markAddress:            {"MARK-OUT", sets.HashIPPort, "Kubernetes service ip + port with endpoints on this node for clients outside", true},
	rejectAddress:          {"REJECT", sets.HashIPPort, "Kubernetes service ip + port has no endpoints", false},
	dropAddress:            {"DROP", sets.HashIPPort, "Kubernetes service ip + port has no local endpoints", false},
	outsideRejectAddress:   {"REJECT-OUT", sets.HashIPPort, "Kubernetes service ip + port has no endpoints for clients outside", false},
	outsideDropAddress:     {"DROP-OUT", sets.HashIPPort, "Kubernetes service ip + port has no local endpoints for clients outside", false},
})

// withNodePorts adds those kinds that there are one of for each protocol.
func withNodePorts(all [kinds]form) [kinds]form {
	for _, p := range protocols {
		ends, typ := "-"+p.String(), sets.BitmapPort
		with, how := "Kubernetes nodeport "+p.String()+" port ", ""
		if p == model.SCTP {
			ends, typ, how = "-SCTP-HASH", sets.HashIPPort, " with type 'hash ip:port'"
		}
		all[nodePort.ofProtocol(p)] = form{"NODE-PORT" + ends, typ, with + "for masquerade purpose" + how, false}
		all[nodePortLocal.ofProtocol(p)] = form{"NODE-PORT-LOCAL" + ends, typ, with + "with externalTrafficPolicy=local" + how, false}
		all[markNodePort.ofProtocol(p)] = form{"MARK-OUT-NODE" + ends, typ, with + "with endpoints on this node for clients outside", true}
		all[rejectNodePort.ofProtocol(p)] = form{"REJECT-NODE" + ends, typ, with + "has no endpoints", false}
		all[dropNodePort.ofProtocol(p)] = form{"DROP-NODE" + ends, typ, with + "has no local endpoints", false}
		all[outsideRejectNodePort.ofProtocol(p)] = form{"REJECT-OUT-NODE" + ends, typ, with + "has no endpoints for clients outside", false}
		all[outsideDropNodePort.ofProtocol(p)] = form{"DROP-OUT-NODE" + ends, typ, with + "has no local endpoints for clients outside", false}
	}
	return all
}

// maxName is the length of the longest name of a set.
const maxName = 31

// setName is the name of a family's set, cut to what the kernel takes, as kube-proxy does.
func setName(k kind, f model.Family) string {
	name := [2]string{model.IPv4: "KUBE-", model.IPv6: "KUBE-6-"}[f] + forms[k].name
	return name[:min(len(name), maxName)]
}

// kindOf is the kind of a set of ours or of kube-proxy's by its name, and its family.
func kindOf(name string) (k kind, f model.Family, ok bool) {
	if !strings.HasPrefix(name, "KUBE-") {
		return 0, 0, false
	}
	for _, f := range model.Families {
		for k := range kinds {
			if setName(k, f) == name {
				return k, f, true
			}
		}
	}
	return 0, 0, false
}

// kube-proxy's sizes.
const (
	hashSize = 1024
	maxElem  = 65536
)

// header is what the set is made with for so many entries.
func header(k kind, f model.Family, entries int) sets.Header {
	h := sets.Header{Name: setName(k, f), Type: forms[k].typ, Marks: forms[k].marks}
	if h.Type == sets.BitmapPort {
		return h
	}
	h.Family, h.HashSize, h.MaxElem = f, hashSize, maxElem
	for int(h.MaxElem) < entries {
		h.MaxElem *= 2
	}
	return h
}
