package iptexec

import (
	"context"
	"errors"
	"slices"
)

// Tables are some tables of one family, as the programs of one variant see them. Where the kernel lacks the family, their
// errors are [ErrNoFamily].
type Tables struct {
	Tools  *Tools
	Family Family
	names  []string
}

// Tables returns the tables of a family with the given names.
func (t *Tools) Tables(f Family, names ...string) Tables {
	return Tables{Tools: t, Family: f, names: slices.Clone(names)}
}

// Probe lists the chains of the mangle table, which is small: to read all tables takes seconds where there are thousands
// of Services.
func (t Tables) Probe(ctx context.Context) error {
	_, err := t.Tools.Chains(ctx, t.Family, "mangle")
	return AsNoFamily(err)
}

// Save is what iptables-save prints of the tables.
func (t Tables) Save(ctx context.Context) ([]byte, error) {
	text, err := t.Tools.Save(ctx, t.Family, t.names...)
	return text, AsNoFamily(err)
}

// Restore gives text to iptables-restore --noflush.
func (t Tables) Restore(ctx context.Context, text []byte) error {
	return AsNoFamily(t.Tools.Restore(ctx, t.Family, text, RestoreOptions{Wait: LockWait}))
}

// Generation is [Tools.Generation]; known is false for the legacy variant, which has none.
func (t Tables) Generation() (number uint32, known bool, err error) {
	number, err = t.Tools.Generation()
	if errors.Is(err, ErrNoGeneration) {
		return 0, false, nil
	}
	return number, err == nil, err
}

// Packets is [Tools.Packets].
func (t Tables) Packets(ctx context.Context, table, chain string) ([]uint64, error) {
	return t.Tools.Packets(ctx, t.Family, table, chain)
}
