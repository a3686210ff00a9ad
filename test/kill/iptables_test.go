package kill

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
)

var families = [...]iptexec.Family{iptexec.IPv4, iptexec.IPv6}

// iptablesMode is mode iptables in one variant of its programs.
type iptablesMode struct {
	variant iptexec.Variant
	tools   *iptexec.Tools
}

func (m *iptablesMode) require(st *stage) {
	st.Helper()
	if m.variant == iptexec.NFT {
		nstest.RequireRoot(st, "the kernel limits an ordinary user's transactions to some hundred rules (net.core.wmem_default)")
	}
}

// prepare leaves the mark by which kubelet tells which variant this node uses.
func (m *iptablesMode) prepare(st *stage) {
	st.Helper()
	st.must(st.lab.Node().Do(func() (err error) {
		if m.tools, err = iptexec.Find(st.Context(), m.variant); err != nil {
			return err
		}
		return m.tools.Restore(st.Context(), iptexec.IPv4, []byte("*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n"), iptexec.RestoreOptions{})
	}))
}

func (*iptablesMode) flags() []string { return []string{"--mode", "iptables"} }

func (*iptablesMode) relays() bool { return false }

func (m *iptablesMode) writing(st *stage, d *daemon.Daemon) bool {
	st.Helper()
	return len(restores(st, d.Pid())) > 0
}

// run has it be killed at any moment of its first sync, at any moment of a write, or just after one, when what connection
// tracking remembers is yet to be cleaned.
func (m *iptablesMode) run(st *stage, round int) *daemon.Daemon {
	st.Helper()
	d := st.start()
	switch round % 3 {
	case 0:
		st.atStart()
	case 1:
		st.atWrite(d)
	case 2:
		st.afterWrite(d, st.write/4)
	}
	return d
}

func (m *iptablesMode) aim(st *stage, d *daemon.Daemon) func() bool {
	st.Helper()
	under := restores(st, d.Pid())
	return func() bool {
		st.Helper()
		for _, pid := range under {
			if !doomed(st, pid) {
				st.Error("iptables-restore outlives the daemon")
			}
		}
		return len(under) > 0
	}
}

// asCompiled compares by `sluice diff` and line by line, so that a fault of the comparison that the daemon itself makes
// shows too.
func (m *iptablesMode) asCompiled(st *stage) error {
	st.Helper()
	if _, err := st.sluice("diff"); err != nil {
		return err
	}
	for _, f := range families {
		rendered, err := st.sluice("render", "--family", strings.ToLower(f.String()))
		if err != nil {
			return err
		}
		if diff := cmp.Diff(ours(rendered), ours(m.save(st, f))); diff != "" {
			return fmt.Errorf("%s: the kernel (+) is not as a fresh compile (-) has it:\n%s", f, diff)
		}
	}
	return nil
}

// ours are the chains and rules of a text as iptables-save prints it, sorted, without the counters, the kernel's own
// chains and the mark that is not Sluice's. Nobody else writes here, so nothing else may be there.
func ours(saved string) (all []string) {
	table := ""
	for l := range strings.Lines(saved) {
		l = regexp.MustCompile(`^\[\d+:\d+\] | \[\d+:\d+\]$`).ReplaceAllString(strings.TrimSpace(l), "")
		switch {
		case strings.HasPrefix(l, "*"):
			table = l
		case strings.HasPrefix(l, ":KUBE-IPTABLES-HINT"):
		case strings.HasPrefix(l, ":KUBE-"), strings.HasPrefix(l, "-A"):
			all = append(all, table+" "+l)
		}
	}
	slices.Sort(all)
	return all
}

func (m *iptablesMode) state(st *stage) string {
	st.Helper()
	state := ""
	for _, f := range families {
		state += regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(m.save(st, f), "")
	}
	err := st.lab.Node().Do(func() error {
		generation, err := m.tools.Generation()
		state += "generation " + strconv.FormatUint(uint64(generation), 10)
		return err
	})
	if m.variant == iptexec.NFT {
		st.must(err)
	}
	return state
}

// save is what iptables-save prints on the node, with the counters of packets.
func (m *iptablesMode) save(st *stage, f iptexec.Family) (text string) {
	st.Helper()
	st.must(st.lab.Node().Do(func() error {
		saved, err := m.tools.Save(context.Background(), f, "filter", "nat", "mangle")
		text = string(saved)
		return err
	}))
	return text
}
