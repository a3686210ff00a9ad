package convert

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"sluice/internal/model"
)

// externalIPs leaves out a wrong address and keeps the others: kube-proxy does so as well, and fewer addresses are
// served than were written.
func externalIPs(n *notes, in []string) []netip.Addr {
	var out []netip.Addr
	for i, text := range in {
		if text == "" {
			continue
		}
		addr, err := usableAddr(text)
		if err != nil {
			n.error(at("spec.externalIPs", i), "%q: %v (left out)", text, err)
			continue
		}
		out = appendNew(out, addr)
	}
	return out
}

// sourceRanges takes the whole Service away for one wrong range: without that range the list could be empty, and an
// empty list lets every source in.
func sourceRanges(w *wrong, in []string) []netip.Prefix {
	var out []netip.Prefix
	for i, text := range in {
		prefix, err := parsePrefix(text)
		if err != nil {
			w.skip(at("spec.loadBalancerSourceRanges", i), "%q: %v", text, err)
			continue
		}
		out = append(out, prefix)
	}
	return out
}

// loadBalancerIPs are the addresses in a load balancer's status: those this node handles, and those that the load
// balancer handles itself. An entry with a host name alone is neither.
func loadBalancerIPs(n *notes, t model.ServiceType, in []corev1.LoadBalancerIngress) (vip, proxy []netip.Addr) {
	if t != model.LoadBalancer {
		return nil, nil
	}
	for i := range in {
		if in[i].IP == "" {
			continue
		}
		field := at("status.loadBalancer.ingress", i)
		addr, err := usableAddr(in[i].IP)
		if err != nil {
			n.error(field+".ip", "%q: %v (left out)", in[i].IP, err)
			continue
		}
		switch mode, err := ipMode(in[i].IPMode); {
		case err != nil:
			n.error(field+".ipMode", "%v (left out)", err)
		case mode == corev1.LoadBalancerIPModeProxy:
			proxy = appendNew(proxy, addr)
		default:
			vip = appendNew(vip, addr)
		}
	}
	return vip, proxy
}

// appendNew adds an address that is not there: one that is written twice is served once.
func appendNew(to []netip.Addr, a netip.Addr) []netip.Addr {
	if slices.Contains(to, a) {
		return to
	}
	return append(to, a)
}

func ipMode(m *corev1.LoadBalancerIPMode) (corev1.LoadBalancerIPMode, error) {
	if m == nil {
		return corev1.LoadBalancerIPModeVIP, nil
	}
	if *m != corev1.LoadBalancerIPModeVIP && *m != corev1.LoadBalancerIPModeProxy {
		return "", fmt.Errorf("%q: must be VIP or Proxy", *m)
	}
	return *m, nil
}
