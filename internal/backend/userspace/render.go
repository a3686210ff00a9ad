package userspace

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// Render writes what the proxy does, as comments, and then the inner mode's rules, so that its own tool reads the whole.
func (r *Ruleset) Render(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, k := range slices.SortedFunc(maps.Keys(r.targets), relay.Key.Compare) {
		r.targetText(b, r.targets[k])
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.refused), plan.PortID.Compare) {
		fmt.Fprintf(b, "# not proxied: %s (%s, %s): %s\n", id, id.Protocol, id.Family, r.refused[id])
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return r.inner.Render(w)
}

// targetText leaves its errors to the Flush of b, which keeps the first one.
func (r *Ruleset) targetText(b *bufio.Writer, t relay.Target) {
	at := addrPort(r.nodeIP[t.Port.Family], t.Listen.Port())
	fmt.Fprintf(b, "# proxy at %s/%s for %s: %s\n", at, t.Port.Protocol, t.Key, how(t))
	for _, e := range t.Endpoints {
		fmt.Fprintf(b, "#   %s", e.AddrPort)
		if e.Weight != 1 {
			fmt.Fprintf(b, " weight %d", e.Weight)
		}
		_, _ = b.WriteString("\n")
	}
}

// how says how the proxy chooses, and what it tells the endpoints.
func how(t relay.Target) string {
	words := []string{map[model.Balancing]string{
		model.BalanceDefault: "round robin", model.BalanceRoundRobin: "round robin",
		model.BalanceRandom: "at random", model.BalanceLeastConnections: "least connections",
	}[t.Balancing]}
	if t.Affinity > 0 {
		words = append(words, fmt.Sprintf("a client keeps its endpoint for %s", t.Affinity))
	}
	if t.ProxyProtocol != 0 {
		words = append(words, fmt.Sprintf("PROXY protocol v%d", t.ProxyProtocol))
	}
	return strings.Join(words, ", ")
}
