package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const saved = `*nat
:KUBE-SVC-67RL4FN6JRUPOJYM - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.10.10.2/32 -p tcp -m comment --comment "default/registry:ssh cluster IP" -j KUBE-SVC-R
-A KUBE-SERVICES -d 10.254.162.44/32 -p tcp -m comment --comment "default/mysql-service cluster IP" -j KUBE-SVC-M
-A KUBE-SEP-R -s 172.17.0.5/32 -m comment --comment "default/registry:ssh" -j KUBE-MARK-MASQ
-A KUBE-SEP-M -s 192.168.125.129/32 -m comment --comment default/mysql-service -j KUBE-MARK-MASQ
-A KUBE-SEP-X -m comment --comment "default/mysql-service-2" -j KUBE-MARK-MASQ
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
COMMIT
`

func TestAbout(t *testing.T) {
	want := `-A KUBE-SERVICES -d 10.254.162.44/32 -p tcp -m comment --comment "default/mysql-service cluster IP" -j KUBE-SVC-M
-A KUBE-SEP-M -s 192.168.125.129/32 -m comment --comment default/mysql-service -j KUBE-MARK-MASQ
`
	if diff := cmp.Diff(want, about(saved, "default/mysql-service")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOf(t *testing.T) {
	want := "-A KUBE-SEP-X -m comment --comment \"default/mysql-service-2\" -j KUBE-MARK-MASQ\n"
	if diff := cmp.Diff(want, of(saved, "KUBE-SEP-X", "KUBE-SEP-Y")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRuleFor(t *testing.T) {
	want := `-A KUBE-SERVICES -d 10.10.10.2/32 -p tcp -m comment --comment "default/registry:ssh cluster IP" -j KUBE-SVC-R`
	if got := ruleFor(saved, registryAddress); got != want {
		t.Errorf("got %s", got)
	}
	if got := ruleFor(saved, "10.0.0.1:80"); got != "" {
		t.Errorf("a rule for an address that has none: %s", got)
	}
}

func TestLinesWith(t *testing.T) {
	want := ":KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\n"
	if diff := cmp.Diff(want, linesWith(saved, "KUBE-FIREWALL")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := linesWith(saved, "DOCKER"); got != "" {
		t.Errorf("got %q", got)
	}
}
