package nftables

import (
	"testing"

	"sluice/internal/plan"
)

// TestAnswerPing: cluster IPs answer everybody's pings, guarded as they are, and those that nobody has do not. Who
// switches it off has them rejected again.
func TestAnswerPing(t *testing.T) {
	l := upLab(t)
	b := New(DefaultOptions(), Deps{})
	for _, on := range []bool{true, false} {
		cfg := testConfig()
		cfg.AnswerPing = on
		w := newRigAs(t, cfg, DefaultOptions(), append(servicesForIPVS(), serviceCIDRs())...)
		applyAt(t, l.Node(), b, w)
		want := plan.Reject
		if on {
			want = plan.Forward
		}
		pings(t, l, map[string]plan.Action{
			"10.96.0.1": want, "10.96.0.2": want, "10.96.0.99": plan.Drop,
			"fd00:96::1": want, "fd00:96::2": want, "fd00:96::99": plan.Drop,
			"192.168.10.11": plan.Forward, "fd00:10::11": plan.Forward, // the node's own
		})
	}
}
