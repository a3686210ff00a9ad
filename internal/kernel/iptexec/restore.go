package iptexec

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"
)

// RestoreOptions says how rules are restored. The zero value adds to what is there.
type RestoreOptions struct {
	Flush    bool          // remove everything from the tables that the text names, other programs' rules included
	Counters bool          // take the counters of chains and rules from the text
	Test     bool          // only check the text
	Wait     time.Duration // how long to wait for the lock of the legacy variant, in whole seconds, at least one
}

// Restore hands text, in the format of iptables-save, to iptables-restore. Each table of the text is changed as one:
// all of it or nothing. The error is a [*RestoreError] where iptables refuses.
func (t *Tools) Restore(ctx context.Context, f Family, text []byte, o RestoreOptions) error {
	input := text
	if t.Variant == NFT && !o.Flush {
		input = readTableFirst(text)
	}
	_, err := run(ctx, t.restoreCommand(f, o), input)
	if failed, ok := errors.AsType[*failure](err); ok {
		return explain(f, t.Variant, input, failed)
	}
	return err
}

func (t *Tools) restoreCommand(f Family, o RestoreOptions) []string {
	command := append([]string(nil), t.command(f, "-restore")...)
	if !o.Flush {
		command = append(command, "--noflush")
	}
	if o.Counters {
		command = append(command, "--counters")
	}
	if o.Test {
		command = append(command, "--test")
	}
	// The nft variant takes no lock: the kernel's transactions do. To the legacy one 0 means for ever (1.8.9).
	if t.Variant == Legacy {
		command = append(command, "--wait="+strconv.Itoa(max(1, int(o.Wait.Seconds()))))
	}
	return command
}

// manyLines is the size of input, in lines, from where the nft variant is made to read the whole table.
const manyLines = 10_000

// listTable is a command that does no more than list the table.
const listTable = "-S\n"

// readTableFirst puts a command that names no chain first into each table of a long text. Until it meets one,
// iptables-nft-restore --noflush keeps the names of all chains that it has to ask the kernel for in a sorted list, and
// searches that list from its start for each line: see the package's documentation for what that costs.
func readTableFirst(text []byte) []byte {
	if bytes.Count(text, []byte("\n")) < manyLines {
		return text
	}
	var b bytes.Buffer
	b.Grow(len(text) + 64)
	for line := range bytes.Lines(text) {
		b.Write(line)
		if line[0] == '*' && line[len(line)-1] == '\n' {
			b.WriteString(listTable)
		}
	}
	return b.Bytes()
}
