package app

import (
	"strings"
	"testing"

	"sluice/internal/config"
)

// A daemon that has yet to hear from its API server leaves what is in the kernel, whatever becomes of its configuration,
// and ends when it is told to.
func TestNothingIsWrittenBeforeTheAPIServerAnswers(t *testing.T) {
	n := newNode(t)
	const former = "-A KUBE-SERVICES -d 10.96.0.99/32 -j ACCEPT"
	n.restore("*nat\n:KUBE-SERVICES - [0:0]\n" + former + "\nCOMMIT\n")
	away := func(c config.Config) config.Config {
		c.Client.Master = "http://192.168.10.11:1"
		return c
	}
	n.in.Manifests, n.in.Config = nil, away(n.in.Config)
	say := n.reloads()
	n.start()
	for i, more := range []string{"--masquerade-all", "--iptables-masquerade-bit=15", "--cluster-cidr=10.245.0.0/16"} {
		say(away(flags(t, "--mode=iptables", "--node=node-a", more)), nil)
		n.eventually("the configuration is followed", func() bool { return strings.Count(n.said(), "the configuration changed") == i+1 })
	}
	n.eventually("it is told that the server is away", func() bool { return strings.Contains(n.said(), "the API server is lost") })
	n.stop()
	if !n.has(former)() {
		t.Errorf("what an earlier process wrote is gone:\n%s", n.rules())
	}
}
