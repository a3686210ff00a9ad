package flow

import (
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

func TestParseAndString(t *testing.T) {
	lines := []string{
		"pod 10.244.1.50 -> 10.96.10.2:9000/TCP: forward 192.168.10.11:9001 192.168.10.11:9002 masquerade=no",
		"node 192.168.10.11 -> 10.96.10.2:53/UDP: forward 10.244.1.2:53 masquerade=yes",
		"pod 10.244.1.7 -> 10.96.10.2:80/TCP: forward 10.244.1.7:80 10.244.1.8:80 masquerade=10.244.1.7:80",
		"pod 10.244.1.50 -> 10.96.10.2:80/TCP: forward 10.244.1.7:80=12.5% 10.244.1.8:80=87.5% masquerade=10.244.1.8:80",
		"pod 10.244.1.50 by azv1 on node-b -> [fd00::1]:80/SCTP: reject",
		"outside 203.0.113.7 -> 192.0.2.1:443/TCP: drop",
		"outside 203.0.113.7 -> 192.0.2.1:444/TCP: unhandled",
	}
	for _, line := range lines {
		f, err := Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := f.String(); got != line {
			t.Errorf("got  %s\nwant %s", got, line)
		}
	}
}

func TestParseSortsEndpoints(t *testing.T) {
	f, err := Parse("pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward 10.0.0.3:80 10.0.0.2:80 masquerade=no")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Want.String(), "forward 10.0.0.2:80 10.0.0.3:80 masquerade=no"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	lines := []string{
		"pod 10.0.0.1: drop",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP",
		"tree 10.0.0.1 -> 10.0.0.9:80/TCP: drop",
		"pod -> 10.0.0.9:80/TCP: drop",
		"pod 10.0.0.1 near eth0 -> 10.0.0.9:80/TCP: drop",
		"pod 10.0.0.1 -> 10.0.0.9:80: drop",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: lose",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: drop 10.0.0.2:80",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward masquerade=no",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward 10.0.0.2:80",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward 10.0.0.2:80=50 masquerade=no",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward 10.0.0.2:80=0% masquerade=no",
		"pod 10.0.0.1 -> 10.0.0.9:80/TCP: forward 10.0.0.2:80=x% masquerade=no",
	}
	for _, line := range lines {
		if f, err := Parse(line); err == nil {
			t.Errorf("%s: parsed as %s", line, f)
		}
	}
}

func TestProxied(t *testing.T) {
	for in, want := range map[string]string{
		"forward 10.0.0.2:80 10.0.0.3:80 masquerade=10.0.0.2:80": "forward 10.0.0.2:80 10.0.0.3:80 masquerade=yes",
		"drop": "drop",
	} {
		f, err := Parse("pod 10.0.0.1 -> 10.0.0.9:80/TCP: " + in)
		if err != nil {
			t.Fatal(err)
		}
		before := f.Want.String()
		if got := f.Proxied(nil).Want.String(); got != want || f.Want.String() != before {
			t.Errorf("%s: got %s, want %s; then it is %s itself", in, got, want, f.Want)
		}
	}
}

// With policy Local, clients outside would be dropped; but where nobody is proxied, all are told.
func TestProxiedSCTP(t *testing.T) {
	s, slice := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	s.Ports[0].Protocol, s.Ports[0].NodePort, slice.Ports[0].Protocol = model.SCTP, 30080, model.SCTP
	s.Type, s.ExternalPolicy, slice.Endpoints = model.NodePort, model.PolicyLocal, slice.Endpoints[1:]
	p := sample.Plan(plan.Config{}, s, slice)
	for _, line := range []string{
		"pod 10.244.1.9 -> 10.96.0.10:80/SCTP: forward 10.244.2.5:8080 masquerade=no",
		"outside 203.0.113.7 -> 192.168.10.11:30080/SCTP: drop",
	} {
		f, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Proxied(p).Want.String(); got != "reject" {
			t.Errorf("%s: got %s, want reject", line, got)
		}
	}
}
