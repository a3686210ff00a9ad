package iptexec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoGeneration occurs when the kernel cannot tell cheaply whether rules have changed: the legacy variant has no
// such number, its rules must be read and compared.
var ErrNoGeneration = errors.New("the legacy variant has no generation number")

// Generation returns the number of the present state of nf_tables in the network namespace of the calling thread. Any
// transaction makes a new one, also one of another program, in another table or of the other family; so an equal
// number means that nothing has changed. The error is [ErrNoGeneration] for the legacy variant.
func (t *Tools) Generation() (uint32, error) {
	if t.Variant == Legacy {
		return 0, ErrNoGeneration
	}
	id, err := generation()
	if err != nil {
		return 0, fmt.Errorf("read generation of nf_tables: %w", err)
	}
	return id, nil
}

func generation() (uint32, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	answers, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
		Data:   make([]byte, nfgenmsgLen),
	})
	if err != nil {
		return 0, err
	}
	if len(answers) != 1 || len(answers[0].Data) < nfgenmsgLen {
		return 0, fmt.Errorf("%d unexpected answers", len(answers))
	}
	return parseGeneration(answers[0].Data[nfgenmsgLen:])
}

// nfgenmsgLen is the size in bytes of the header that starts every message of netfilter.
const nfgenmsgLen = 4

func parseGeneration(attributes []byte) (uint32, error) {
	d, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return 0, err
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		if d.Type() == unix.NFTA_GEN_ID {
			return d.Uint32(), d.Err()
		}
	}
	return 0, errors.Join(errors.New("an answer without a number"), d.Err())
}
