package kill

// userspaceMode is mode userspace over nftables. A kill ends what it relays; what it leaves behind and what the next
// daemon makes of that is as in mode nftables, and the next one listens at the ports that the rules lead to.
type userspaceMode struct{ nftablesMode }

func (userspaceMode) flags() []string { return []string{"--mode", "userspace"} }

func (userspaceMode) relays() bool { return true }

// asCompiled compares by `sluice diff` alone: what `render` makes of the manifests lacks the node's IPv6 address, which no
// manifest tells.
func (userspaceMode) asCompiled(st *stage) error {
	st.Helper()
	_, err := st.sluice("diff")
	return err
}
