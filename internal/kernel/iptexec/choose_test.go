package iptexec_test

import (
	"errors"
	"testing"

	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

func TestChoose(t *testing.T) {
	nstest.Require(t)
	system := find(t, "")
	tests := []struct {
		name  string
		want  iptexec.Variant
		hint  iptexec.Variant
		chain string
		is    iptexec.Variant
	}{
		{name: "default", is: system.Variant},
		{name: "explicit", want: iptexec.Legacy, hint: iptexec.NFT, chain: "KUBE-IPTABLES-HINT", is: iptexec.Legacy},
		{name: "hint in nft", hint: iptexec.NFT, chain: "KUBE-IPTABLES-HINT", is: iptexec.NFT},
		{name: "hint in legacy", hint: iptexec.Legacy, chain: "KUBE-IPTABLES-HINT", is: iptexec.Legacy},
		{name: "canary in legacy", hint: iptexec.Legacy, chain: "KUBE-KUBELET-CANARY", is: iptexec.Legacy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inNewNamespace(t, func() {
				if tt.hint != "" {
					restore(t, find(t, tt.hint), iptexec.IPv4, "*mangle\n:"+tt.chain+" - [0:0]\nCOMMIT\n")
				}
				got, err := iptexec.Choose(t.Context(), tt.want)
				if err != nil {
					t.Error(err)
				} else if got.Variant != tt.is {
					t.Errorf("chose %s, want %s", got.Variant, tt.is)
				}
			})
		})
	}
}

// Looking for the other variant's chains must not put that variant's hooks into the way of packets.
func TestSaveCreatesNoTable(t *testing.T) {
	nstest.Require(t)
	inNewNamespace(t, func() {
		legacy := find(t, iptexec.Legacy)
		for range 2 { // the second would see what the first has created
			text, err := legacy.Save(t.Context(), iptexec.IPv4, "mangle")
			if err != nil || len(text) != 0 {
				t.Errorf("got %q, %v", text, err)
			}
		}
	})
}

func TestOrdinaryUsersPath(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	if _, err := iptexec.Find(t.Context(), ""); errors.Is(err, iptexec.ErrNotInstalled) {
		t.Error(err)
	}
}

func find(t *testing.T, v iptexec.Variant) *iptexec.Tools {
	t.Helper()
	tools, err := iptexec.Find(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func inNewNamespace(t *testing.T, f func()) {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(func() error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}
