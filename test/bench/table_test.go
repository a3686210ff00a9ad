package bench

import (
	"cmp"
	"fmt"
	"strings"

	"sluice/internal/kernel/iptexec"
)

// table has a row for each thing measured and columns for each variant.
type table struct {
	variant iptexec.Variant
	bare    cost
	names   []string
	cells   map[string]map[iptexec.Variant]string
}

func (t *table) begin(v iptexec.Variant) { t.variant, t.bare = v, cost{} }

// add enters what something took, and how many times what the bare restore took.
func (t *table) add(what string, c cost) cost {
	if t.cells == nil {
		t.cells = map[string]map[iptexec.Variant]string{}
	}
	if t.cells[what] == nil {
		t.names, t.cells[what] = append(t.names, what), map[iptexec.Variant]string{}
	}
	cell := fmt.Sprintf("%.2f | %.2f | %.3f", c.cpu.Seconds(), c.wall.Seconds(), c.cpu.Seconds()/cmp.Or(t.bare, c).cpu.Seconds())
	if c.peak > 0 {
		cell = fmt.Sprintf("%d MiB | |", c.peak>>20)
	}
	t.cells[what][t.variant] = cell
	fmt.Printf("%s: %s: %s\n", t.variant, what, cell)
	return c
}

// String is the table in Markdown.
func (t *table) String() string {
	var text strings.Builder
	text.WriteString("| | nft: CPU s | elapsed s | ÷ bare | legacy: CPU s | elapsed s | ÷ bare |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range t.names {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", name, cmp.Or(t.cells[name][iptexec.NFT], "| |"), cmp.Or(t.cells[name][iptexec.Legacy], "| |"))
	}
	return text.String()
}
