package rules

// Ruleset is the tables of one family, in the order in which they were written.
type Ruleset struct {
	Tables []*Table
}

// Table is the named table, or nil.
func (rs *Ruleset) Table(name string) *Table {
	for _, t := range rs.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// AddTable is the named table, made at the end where there is none.
func (rs *Ruleset) AddTable(name string) *Table {
	if t := rs.Table(name); t != nil {
		return t
	}
	t := &Table{Name: name, index: map[string]*Chain{}}
	rs.Tables = append(rs.Tables, t)
	return t
}

// Table is a table and its chains in order. Chains are added with AddChain.
type Table struct {
	Name   string
	Chains []*Chain
	index  map[string]*Chain
}

// Chain is the named chain, or nil. It may be asked of a nil Table.
func (t *Table) Chain(name string) *Chain {
	if t == nil {
		return nil
	}
	return t.index[name]
}

// AddChain is the named chain, made at the end, without a policy, where there is none.
func (t *Table) AddChain(name string) *Chain {
	if c := t.index[name]; c != nil {
		return c
	}
	c := &Chain{Name: name}
	if t.index == nil {
		t.index = map[string]*Chain{}
	}
	t.index[name] = c
	t.Chains = append(t.Chains, c)
	return c
}

// Chain is a chain and its rules in order.
type Chain struct {
	Name   string
	Policy string // of a built-in chain, ACCEPT or DROP; empty for others
	Rules  []Rule
}

// Add appends a rule.
func (c *Chain) Add(r Rule) { c.Rules = append(c.Rules, r) }

// Rule is the text of a rule as iptables-save prints it after "-A CHAIN ".
type Rule string
