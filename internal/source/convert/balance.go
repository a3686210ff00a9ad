package convert

import (
	"regexp"

	"sluice/internal/model"
)

// balancings are the values of [BalanceAnnotation].
var balancings = map[string]model.Balancing{
	"": model.BalanceDefault, "random": model.BalanceRandom,
	"round-robin": model.BalanceRoundRobin, "least-connections": model.BalanceLeastConnections,
}

func balancing(n *notes, annotations map[string]string) model.Balancing {
	v := annotations[BalanceAnnotation]
	b, ok := balancings[v]
	if !ok {
		n.warn("metadata.annotations["+BalanceAnnotation+"]", "%q: must be random, round-robin or least-connections; it is ignored", v)
	}
	return b
}

// schedulerName is what the kernel accepts: IP_VS_SCHEDNAME_MAXLEN is 16, with the end of the string.
var schedulerName = regexp.MustCompile(`^[a-z0-9_-]{1,15}$`)

// scheduler is any name that a scheduler may have: which there are is known on the node alone.
func scheduler(n *notes, annotations map[string]string) string {
	v := annotations[SchedulerAnnotation]
	if v != "" && !schedulerName.MatchString(v) {
		n.warn("metadata.annotations["+SchedulerAnnotation+"]", "%q: must be the name of a scheduler of ipvs, such as wrr; it is ignored", v)
		return ""
	}
	return v
}

func proxyProtocol(n *notes, annotations map[string]string) model.ProxyProtocol {
	switch v := annotations[ProxyProtocolAnnotation]; v {
	case "":
	case "v1":
		return 1
	case "v2":
		return 2
	default:
		n.warn("metadata.annotations["+ProxyProtocolAnnotation+"]", "%q: must be v1 or v2; it is ignored", v)
	}
	return 0
}
