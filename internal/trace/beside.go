package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Chain is a base chain that somebody else has in the kernel, beside the rules that were walked.
type Chain struct {
	Table  string `json:"table"` // with its family, as in "ip filter"
	Name   string `json:"chain"`
	Hook   string `json:"hook"`
	Policy string `json:"policy"`
	Rules  int    `json:"rules"`
}

// Idle reports whether the chain lets everything pass as it is.
func (c Chain) Idle() bool { return c.Rules == 0 && c.Policy != "drop" }

func (c Chain) String() string {
	return fmt.Sprintf("%s (hook %s, policy %s, %s)", c.Name, c.Hook, c.Policy, count(c.Rules, "rule"))
}

// Meet has the packet pass chains that were not followed, as far as it comes by their hooks. What they do is not known,
// so any that may do something leaves doubt.
func (r *Result) Meet(chains []Chain) {
	for _, c := range chains {
		if !c.Idle() && slices.Contains(r.Hooks, c.Hook) {
			r.NotFollowed = append(r.NotFollowed, c)
			r.Uncertain = true
		}
	}
}

// Hooks are hooks of the kernel, each once, by the names that nft has for them.
type Hooks []string

// Add adds a hook.
func (h *Hooks) Add(hook string) {
	if !slices.Contains(*h, hook) {
		*h = append(*h, hook)
	}
}

// besides is a note for each table that has chains which were not followed.
func (r *Result) besides() (notes []string) {
	var tables []string
	chains := map[string][]string{}
	for _, c := range r.NotFollowed {
		if chains[c.Table] == nil {
			tables = append(tables, c.Table)
		}
		chains[c.Table] = append(chains[c.Table], c.String())
	}
	for _, t := range tables {
		notes = append(notes, fmt.Sprintf("the packet also passes table %s, which is not followed here and may do anything with it: chain %s",
			t, strings.Join(chains[t], ", ")))
	}
	return notes
}
