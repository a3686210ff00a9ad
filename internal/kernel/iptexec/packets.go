package iptexec

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Packets tells how many packets each rule of a chain has matched, in order. The legacy variant reads the whole table for
// that, and waits as long as somebody writes. A table that the kernel does not have has no rules, and is not created.
func (t *Tools) Packets(ctx context.Context, f Family, table, chain string) (counts []uint64, err error) {
	if t.Variant == Legacy && !legacyTable(f, table) {
		return nil, nil
	}
	command := slices.Concat(t.command(f, ""), []string{"--wait", "--table", table, "--verbose", "--list-rules", chain})
	text, err := run(ctx, command, nil)
	if err != nil {
		return nil, fmt.Errorf("count packets in %s %s %s (%s): %w", f, table, chain, t.Variant, err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "-A ") {
			counts = append(counts, packetsOf(line))
		}
	}
	return counts, nil
}

// counters are a rule's, packets and bytes, as in "-c 12 720". They are behind its matches, so the last words that look like
// them are not those of a comment.
var counters = regexp.MustCompile(`.* -c (\d+) \d+`)

func packetsOf(rule string) (n uint64) {
	if m := counters.FindStringSubmatch(rule); m != nil {
		n, _ = strconv.ParseUint(m[1], 10, 64) // the program prints no more than the kernel's 64 bits
	}
	return n
}
