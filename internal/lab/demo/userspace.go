package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// userspaceRules are those of mode userspace: the rules of another mode, which lead to the daemon, and what that does.
type userspaceRules struct {
	rules
	story *story
}

func (r *userspaceRules) explain(ctx context.Context) error {
	rendered, err := r.story.render(ctx)
	if err != nil {
		return err
	}
	r.story.say("The daemon passes connections on itself: it listens at a port of the node for each Service port, and connects")
	r.story.say("to a pod for each client. This is what it listens for, as sluice render prints it:")
	r.story.print("")
	r.story.quote(proxies(rendered))
	r.story.print("")
	r.story.say("Rules lead the Services' addresses there, and leave the client's own as it is.")
	r.story.print("")
	return r.rules.explain(ctx)
}

// leadTo asks the daemon to how many endpoints it connects: no rule says it. The story takes one pod away at a time, so if
// they are as many as pods, this one is among them.
func (r *userspaceRules) leadTo(ctx context.Context, endpoint netip.AddrPort) (bool, error) {
	service := r.story.serviceOf(endpoint)
	told, err := r.story.sluice(ctx, "status", service, "-o", "json")
	if err != nil {
		return false, err
	}
	endpoints, done, err := readStatus(told)
	return !done || endpoints == len(r.story.behind(service)), err
}

// serviceOf is the Service that a pod is behind.
func (s *story) serviceOf(endpoint netip.AddrPort) string {
	for _, p := range s.pods {
		if p.endpoint() == endpoint {
			return p.service
		}
	}
	return ""
}

// readStatus is how many endpoints a Service with one port has, and whether the proxy has them by now.
func readStatus(told string) (endpoints int, done bool, err error) {
	var report struct {
		ServicePorts []struct {
			State     string
			Endpoints int
		}
	}
	if err := json.Unmarshal([]byte(told), &report); err != nil {
		return 0, false, fmt.Errorf("read the answer of status: %w", err)
	}
	if len(report.ServicePorts) != 1 {
		return 0, false, fmt.Errorf("status tells of %d Service ports, want one:\n%s", len(report.ServicePorts), told)
	}
	p := report.ServicePorts[0]
	return p.Endpoints, p.State == "done", nil
}

// proxies are what render says that the daemon listens for.
func proxies(rendered string) string {
	comment := regexp.MustCompile(`(?m)^# (proxy at|  \S).*\n`)
	return strings.Join(comment.FindAllString(rendered, -1), "")
}

// proxiesOf are where it listens for a Service.
func proxiesOf(rendered, service string) (all []netip.AddrPort) {
	at := regexp.MustCompile(`(?m)^# proxy at (\S+)/TCP for default/` + regexp.QuoteMeta(service) + `[: ]`)
	for _, found := range at.FindAllStringSubmatch(rendered, -1) {
		if a, err := netip.ParseAddrPort(found[1]); err == nil {
			all = append(all, a)
		}
	}
	return all
}
