package iptexec

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Save returns the rules of a table, or of all tables when it is "", as iptables-save writes them, with counters.
// A table that the kernel does not have gives an empty text; it is not created.
func (t *Tools) Save(ctx context.Context, f Family, table string) ([]byte, error) {
	args := []string{"--counters"}
	if table != "" {
		if t.Variant == Legacy && !legacyTable(f, table) {
			return nil, nil
		}
		args = append(args, "--table", table)
	}
	text, err := run(ctx, slices.Concat(t.command(f, "-save"), args), nil)
	if err != nil {
		return nil, fmt.Errorf("read %s rules (%s): %w", f, t.Variant, err)
	}
	return text, nil
}

// legacyTable reports whether the kernel has the x_tables table. Naming a table to iptables-legacy-save creates it,
// with its hooks in the way of every packet. Where the list cannot be read the table may be there.
func legacyTable(f Family, table string) bool {
	list := map[Family]string{IPv4: "/proc/thread-self/net/ip_tables_names", IPv6: "/proc/thread-self/net/ip6_tables_names"}
	names, err := os.ReadFile(list[f])
	if os.IsNotExist(err) {
		return false // x_tables is not in the kernel
	}
	return err != nil || slices.Contains(strings.Fields(string(names)), table)
}
