package iptables

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// restore is iptables-restore --noflush on tables in memory. It refuses what the kernel refuses: rules that lead to a
// chain that is not there, a chain removed that is in use or not empty, a rule deleted that is not there.
func restore(have contents, text string) (contents, error) {
	now := have.clone()
	r := restorer{table: -1}
	for number, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if err := r.line(now, l); err != nil {
			return have, fmt.Errorf("line %d: %s: %w", number+1, l, err)
		}
	}
	if r.table >= 0 {
		return have, fmt.Errorf("no COMMIT")
	}
	return now, nil
}

type restorer struct{ table int }

func (r *restorer) line(now contents, l string) error {
	if r.table < 0 {
		r.table = slices.IndexFunc(tables[:], func(t Table) bool { return l == "*"+t.String() })
		if r.table < 0 {
			return fmt.Errorf("no table")
		}
		return nil
	}
	have := now[r.table]
	command, rest, _ := strings.Cut(l, " ")
	name, rest, _ := strings.Cut(rest, " ")
	switch {
	case l == "COMMIT":
		r.table = -1
		return dangling(have, slices.Collect(maps.Values(have))...)
	case strings.HasPrefix(l, ":"):
		if chain := command[1:]; !slices.Contains(kernelChains[:], chain) || have[chain] == "" {
			have[chain] = ""
		}
		return nil
	case command == "-X":
		return remove(have, name)
	}
	text, ok := have[name]
	if !ok {
		return fmt.Errorf("no chain %s", name)
	}
	all := lines(text)
	switch command {
	case "-A":
		all = append(all, l)
	case "-I":
		at, spec, _ := strings.Cut(rest, " ")
		place, err := strconv.Atoi(at)
		if err != nil || place < 1 || place > len(all)+1 {
			return fmt.Errorf("bad place %q", at)
		}
		all = slices.Insert(all, place-1, "-A "+name+" "+spec)
	case "-D":
		at := slices.Index(all, "-A "+name+" "+rest)
		if at < 0 {
			return fmt.Errorf("no such rule")
		}
		all = slices.Delete(all, at, at+1)
	default:
		return fmt.Errorf("unknown command")
	}
	have[name] = join(all)
	return dangling(have, have[name])
}

func join(all []string) (text string) {
	for _, l := range all {
		text += l + "\n"
	}
	return text
}

// dangling finds a rule that leads to a chain that is not there.
func dangling(have map[string]string, texts ...string) error {
	for _, text := range texts {
		for _, l := range lines(text) {
			to := targetOf(l)
			if _, ok := have[to]; !ok && strings.HasPrefix(to, "KUBE-") {
				return fmt.Errorf("%s: %s is not there", l, to)
			}
		}
	}
	return nil
}

func remove(have map[string]string, name string) error {
	text, ok := have[name]
	if !ok {
		return fmt.Errorf("no such chain")
	}
	if text != "" {
		return fmt.Errorf("chain is not empty")
	}
	for other, text := range have {
		for _, l := range lines(text) {
			if targetOf(l) == name {
				return fmt.Errorf("%s still leads to it", other)
			}
		}
	}
	delete(have, name)
	return nil
}

// emptyKernel is what a kernel holds before anything is written.
func emptyKernel() contents {
	c := newContents()
	for t, names := range map[Table][]string{
		Filter: {chainInput, chainForward, chainOutput},
		Nat:    {chainPrerouting, chainInput, chainOutput, chainPostrouting},
		Mangle: {chainPrerouting, chainInput, chainForward, chainOutput, chainPostrouting},
	} {
		for _, name := range names {
			c[t][name] = ""
		}
	}
	return c
}
