package iptexec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Save returns the rules of the tables named, as iptables-save writes them, with counters. A table that the kernel
// does not have adds nothing to the text and is not created.
func (t *Tools) Save(ctx context.Context, f Family, tables ...string) ([]byte, error) {
	if t.Variant == NFT && len(tables) > 1 {
		return t.saveTogether(ctx, f, tables)
	}
	var all []byte
	for _, table := range tables {
		if t.Variant == Legacy && !legacyTable(f, table) {
			continue
		}
		text, err := run(ctx, slices.Concat(t.command(f, "-save"), []string{"--counters", "--table", table}), nil)
		if err != nil {
			return nil, fmt.Errorf("read %s table %s (%s): %w", f, table, t.Variant, err)
		}
		all = append(all, text...)
	}
	return all, nil
}

// saveTogether runs the program once: that of the nft variant fetches the rules of all tables whichever it is asked for
// (1.8.9), which takes seconds where there are many.
func (t *Tools) saveTogether(ctx context.Context, f Family, tables []string) ([]byte, error) {
	text, err := run(ctx, slices.Concat(t.command(f, "-save"), []string{"--counters"}), nil)
	if err != nil {
		return nil, fmt.Errorf("read %s tables %s (%s): %w", f, strings.Join(tables, ", "), t.Variant, err)
	}
	var all []byte
	for _, table := range tables {
		all = append(all, section(text, table)...)
	}
	return all, nil
}

// Chains lists the chains of a table. With the nft variant it costs what the table holds, where [Tools.Save] costs what
// all of them hold.
func (t *Tools) Chains(ctx context.Context, f Family, table string) (names []string, err error) {
	var text []byte
	if t.Variant == NFT {
		text, err = run(ctx, slices.Concat(t.command(f, ""), []string{"--table", table, "--list-rules"}), nil)
	}
	if t.Variant == Legacy || err != nil { // it refuses tables that nft has put other things into
		text, err = t.Save(ctx, f, table)
	}
	for line := range strings.Lines(string(text)) {
		for _, start := range []string{":", "-P ", "-N "} {
			if name, ok := strings.CutPrefix(line, start); ok {
				names = append(names, strings.Fields(name)[0])
			}
		}
	}
	return names, err
}

// section is the part of what iptables-save printed that is about one table.
func section(text []byte, table string) []byte {
	_, text, found := bytes.Cut(text, []byte("\n*"+table+"\n")) // a comment is ahead of the first one
	if !found {
		return nil
	}
	rules, _, whole := bytes.Cut(text, []byte("\nCOMMIT\n"))
	all := slices.Concat([]byte("*"+table+"\n"), rules, []byte("\n"))
	if whole { // else whoever reads it sees that it was cut short
		all = append(all, "COMMIT\n"...)
	}
	return all
}

// legacyTable reports whether the kernel has the x_tables table. Naming a table to iptables-legacy-save creates it,
// with its hooks in the way of every packet. An ordinary user who is root in a user namespace may not read the list; the
// table is then taken to be there.
func legacyTable(f Family, table string) bool {
	names, known := legacyTables(f)
	return !known || slices.Contains(names, table)
}

// legacyTables are the x_tables tables of a family, if that is known.
func legacyTables(f Family) (names []string, known bool) {
	list := map[Family]string{IPv4: "/proc/thread-self/net/ip_tables_names", IPv6: "/proc/thread-self/net/ip6_tables_names"}
	text, err := os.ReadFile(list[f])
	if os.IsNotExist(err) {
		return nil, true // x_tables is not in the kernel
	}
	return strings.Fields(string(text)), err == nil
}

// LegacyInUse reports whether there may be rules of the legacy variant that its programs can reach: they take root, who
// can also know whether there are tables, save in a user namespace.
func LegacyInUse() bool {
	for _, f := range []Family{IPv4, IPv6} {
		if names, known := legacyTables(f); len(names) > 0 || !known && os.Geteuid() == 0 {
			return true
		}
	}
	return false
}
