package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/lab"
	"sluice/internal/plan"
	"sluice/internal/source/manifest"
)

// build makes the manifests, the pods that their workloads ask for, and the lab around them.
func (s *story) build(context.Context) error {
	for _, example := range []string{"registry.yaml", "mysql-service.yaml"} {
		if err := s.folder.putExample(example); err != nil {
			return err
		}
	}
	if err := errors.Join(s.folder.putNode(), s.makePods()); err != nil {
		return err
	}
	start := time.Now()
	l, err := lab.Up(topology(s.pods))
	if err != nil {
		return err
	}
	took := time.Since(start)
	s.lab, s.node, s.client, s.shell = l, l.Node(), l.Host(clientName), l.Host(shellName)
	for _, p := range s.pods {
		p.host = l.Host(p.name)
		if err := p.answer(); err != nil {
			return err
		}
	}
	s.say("Every machine here is a network namespace, made just now in %d ms and gone when this program ends:", took.Milliseconds())
	s.print("")
	s.say("%s", picture(s.pods))
	s.print("")
	s.say("The pods are those that the ReplicationControllers in examples/registry.yaml and mysql-service.yaml ask")
	s.say("for. Each answers at its container's port and says whom it sees as its client. No machine has one of the")
	s.say("Services' addresses, so at first:")
	return s.unreachable()
}

// unreachable checks that nothing answers at the Services' addresses.
func (s *story) unreachable() error {
	for _, to := range []string{registryAddress, mysqlAddress} {
		o, err := s.shell.Dial(tcp(to))
		if err != nil {
			return err
		}
		s.check(o.Action == plan.Unhandled, "%s leads nowhere", to)
	}
	return nil
}

// makePods makes the pods that the workloads in the manifests ask for.
func (s *story) makePods() error {
	templates, problems, err := manifest.ReadTemplates([]string{string(s.folder)}, nil)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("the manifests of the demo: %w", problems[0])
	}
	services := map[string]string{"registry": "registry", "mysql": "mysql-service"}
	for _, t := range templates {
		for i, address := range podAddresses()[t.Name.Name] {
			p := &pod{
				name: fmt.Sprintf("%s-%d", t.Name.Name, i), workload: t.Name.Name, service: services[t.Name.Name],
				labels: t.Labels, port: t.Ports[0].Port, address: address,
			}
			s.pods = append(s.pods, p)
			if err := s.folder.putPod(p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts the daemon and waits for the Services to answer.
func (s *story) begin(ctx context.Context) error {
	s.say("On %s, this program runs once more, as the daemon:", nodeName)
	s.print("")
	s.command(s.runCommand())
	s.print("")
	start := time.Now()
	if err := s.startDaemon(); err != nil {
		return err
	}
	for _, to := range []string{registryAddress, mysqlAddress} {
		if err := s.answers(ctx, to); err != nil {
			return err
		}
	}
	s.check(true, "both Services answered %d ms after its start", time.Since(start).Milliseconds())
	return nil
}

// answers waits until an address of a Service answers. It does not wait long for each try: the kernel tells a client only
// a few times in a second that there is no way to an address (net.ipv4.route.error_cost), and then is silent.
func (s *story) answers(ctx context.Context, to string) error {
	dial := tcp(to)
	dial.Timeout = 100 * time.Millisecond
	ok, err := eventually(ctx, func() (bool, error) {
		if !s.daemon.running() {
			return false, fmt.Errorf("the daemon has ended:\n%s", s.lastWords())
		}
		o, err := s.shell.Dial(dial)
		return o.Action == plan.Forward, err
	})
	if err == nil && !ok {
		err = fmt.Errorf("nothing answers at %s; the daemon says:\n%s", to, s.lastWords())
	}
	return err
}
