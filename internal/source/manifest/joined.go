package manifest

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// tellUnjoined tells of endpoints that no Service port gets. In a cluster that is no news, since slices may come before
// their Service; here everything is read together.
func (a *assembly) tellUnjoined(s *model.Snapshot, sliced map[model.Name]bool) {
	for _, o := range a.objects {
		switch v := o.value.(type) {
		case slice:
			if v.Slice != nil {
				by := joint{v.owner, "metadata.labels[" + discoveryv1.LabelServiceName + "]", "ports"}
				a.tellJoint(o, by, s.Services[v.owner], []*model.Slice{v.Slice})
			}
		case endpoints:
			if owner := o.id.name; !sliced[owner] {
				a.tellJoint(o, joint{owner, "metadata.name", "subsets"}, s.Services[owner], v)
			}
		}
	}
}

// joint is the Service that endpoints belong to, and the fields that join them to it and to its ports.
type joint struct {
	service               model.Name
	nameField, portsField string
}

func (a *assembly) tellJoint(o origin, by joint, service *model.Service, made []*model.Slice) {
	offered, some := offers(made)
	switch {
	case !some:
	case service == nil:
		if !a.hidden && !a.wrong[id{kind: "Service", name: by.service}] {
			a.notice(o, by.nameField, "there is no Service %s, so the endpoints are not used", by.service)
		}
	case len(offered) == 0 && len(o.problems) > 0: // the ports are left out, which is told
	case takesEndpoints(service) && !overlap(wants(service), offered):
		a.notice(o, by.portsField, "%s: Service %s has %s, so the endpoints are not used; ports are joined by name and protocol",
			portList(offered), by.service, portList(wants(service)))
	}
}

func (a *assembly) notice(o origin, field, format string, args ...any) {
	a.tell(o, convert.Problem{Field: field, Message: fmt.Sprintf(format, args...), Severity: convert.Notice})
}

// port is what joins a port of a Service and one of its endpoints.
type port struct {
	name     string
	protocol model.Protocol
}

// offers are the ports of slices that have endpoints, and whether any have.
func offers(made []*model.Slice) (ports []port, some bool) {
	for _, s := range made {
		if len(s.Endpoints) == 0 {
			continue
		}
		some = true
		for _, p := range s.Ports {
			ports = append(ports, port{p.Name, p.Protocol})
		}
	}
	return ports, some
}

func wants(s *model.Service) (ports []port) {
	for _, p := range s.Ports {
		ports = append(ports, port{p.Name, p.Protocol})
	}
	return ports
}

func overlap(a, b []port) bool {
	return slices.ContainsFunc(a, func(p port) bool { return slices.Contains(b, p) })
}

// takesEndpoints reports whether a proxy has use for endpoints of the Service.
func takesEndpoints(s *model.Service) bool {
	return !s.Headless && !s.HeadlessLabel && !s.OtherProxy && s.Type != model.ExternalName
}

// portList is such as `"http"/TCP, ""/UDP`.
func portList(ports []port) string {
	var texts []string
	for _, p := range ports {
		texts = append(texts, fmt.Sprintf("%q/%s", p.name, p.protocol))
	}
	if len(texts) == 0 {
		return "none"
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}
