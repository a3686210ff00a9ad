package rules

import (
	"strings"
	"testing"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b Rule
		want bool
	}{
		{"-d 10.0.0.1 -j A", "-d 10.0.0.1/32 -j A", true},
		{"-d 10.0.0.1 -j A", "! -d 10.0.0.1/32 -j A", false},
		{"-s 10.0.0.1/255.0.255.0 -j A", "-s 10.9.0.2/255.0.255.0 -j A", true},
		{"-s 10.0.0.1/24 -j A", "-s 10.0.0.2/255.255.255.0 -j A", true},
		{"-s ::/0 -j A", "-j A", true},
		{"! -s ::/0 -j A", "-j A", false},
		{"-p tcp -m tcp -j A", "-p 6 -j A", true},
		{"-p tcp -m tcp -j A", "-p udp -m udp -j A", false},
		{"-p all -i + -j A", "-j A", true},
		{"-p tcp --dport 80 -j A", "-m comment --comment x -p tcp --dport 80 -j A", false},
		{"-m tcp -p tcp --dport 80 -m addrtype --dst-type LOCAL -j A", "-p tcp -m addrtype --dst-type LOCAL -m tcp --dport 80 -j A", true},
		{"-p tcp --dport 80 -j A", "-p tcp --sport 80 -j A", false},
		{"-p tcp --dport 0:65535 -j A", "-p tcp -j A", true},
		{"-p tcp --destination-port 080 -j A", "-p tcp -m tcp --dport 80:80 -j A", true},
		{"-j MARK --set-mark 0x1/0x2", "-j MARK --set-xmark 0x1/0x3", true},
		{"-j MARK --and-mark 0xff", "-j MARK --set-xmark 0/0xffffff00", true},
		{"-j MARK --or-mark 0x4000", "-j MARK --set-xmark 0x4000/0x0", false},
		{"-m mark --mark 0x00004000/0xffffffff -j A", "-m mark --mark 16384 -j A", true},
		{"-m mark --mark 1 -j A", "-m connmark --mark 1 -j A", false},
		{"-m statistic --mode random --probability 0.3333333333 -j A", "-m statistic --mode random --probability 0.33333333349 -j A", true},
		{"-m statistic --mode random --probability 0.3333333333 -j A", "-m statistic --mode random --probability 0.33333333 -j A", false},
		{"-m statistic --mode nth --every 2 -j A", "-m statistic --mode nth --every 2 --packet 0 -j A", true},
		{"-m statistic --mode nth --every 2 --packet 1 -j A", "-m statistic --mode nth --every 2 --packet 0 -j A", false},
		{"-m recent --set --name X --mask 255.255.255.255 --rsource -j A", "-m recent --name X --set -j A", true},
		{"-m recent --set --name X --rdest -j A", "-m recent --name X --set -j A", false},
		{"-m recent --set --name X -m statistic --mode nth --every 2 -j A", "-m statistic --mode nth --every 2 -m recent --set --name X -j A", false},
		{"-m recent --set --name X -m mark --mark 1 -j A", "-m mark --mark 1 -m recent --set --name X -j A", false},
		{"-m recent --set --name X -m comment --comment c -j A", "-m comment --comment c -m recent --set --name X -j A", true},
		{"-m state --state NEW,ESTABLISHED -j A", "-m conntrack --ctstate ESTABLISHED,NEW -j A", true},
		{"-m addrtype --src-type LOCAL,UNICAST -j A", "-m addrtype --src-type UNICAST,LOCAL -j A", true},
		{"-j REJECT", "-j REJECT --reject-with icmp6-port-unreachable", true},
		{"-j REJECT", "-j REJECT --reject-with tcp-reset", false},
		{"-j REJECT", "-j DROP", false},
		{"-j A", "-g A", false},
		{"-j MASQUERADE", "-j MASQUERADE --random-fully", false},
		{"-j DNAT --to-destination [fd00:0::1]:80", "-j DNAT --to-destination [fd00::1]:80", true},
		{`-m comment --comment a/b -j A`, `-m comment --comment "a/b" -j A`, true},
		{"-m weird --b 1 --a 2 -j A", "-m weird --a 2 --b 1 -j A", false},
		{"-j A --unknown", "-j A", false},
		{"-i eth0 -j A", "-o eth0 -j A", false},
		{"nonsense", "nonsense ", false},
	} {
		if got := Equal(c.a, c.b); got != c.want {
			t.Errorf("Equal(%s, %s) = %v\nnormal: %s\n   and: %s", c.a, c.b, got, c.a.Normal(), c.b.Normal())
		}
	}
}

func TestProbabilityText(t *testing.T) {
	for n, want := range map[uint32]string{One: "1.00000000000", One / 2: "0.50000000000", 715827883: "0.33333333349"} {
		if got := Probability(n); got != want {
			t.Errorf("Probability(%d) = %s, want %s", n, got, want)
		}
		if back, ok := ParseProbability(want); !ok || back != n {
			t.Errorf("ParseProbability(%s) = %d, want %d", want, back, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(saved)
	for _, name := range []string{"ipv4.rules", "ipv6.rules", "ipv4-nft.saved", "ipv6-legacy.saved"} {
		for line := range strings.Lines(string(read(f, name))) {
			if command, rest := cut(line); command == "-A" {
				_, rule := cut(strings.TrimSpace(rest))
				f.Add(restoreText(Rule(rule))) // one alone: the fuzzer takes minutes to shorten a large text
			}
		}
	}
	f.Add(restoreText(`-m foo ! --bar ! "-x" --dport 3 -p tcp`, `-m comment --comment -p -j A`))
	f.Fuzz(func(t *testing.T, text string) {
		rs, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		printed := rs.String()
		again, err := Parse(strings.NewReader(printed))
		if err != nil {
			t.Fatalf("does not read its own text: %v\n%s", err, printed)
		}
		if again.String() != printed {
			t.Fatalf("%s\nreads back as\n%s", printed, again.String())
		}
		for _, table := range rs.Tables {
			for _, c := range table.Chains {
				for _, r := range c.Rules {
					normal := r.Normal()
					if twice := Rule(normal).Normal(); twice != normal {
						t.Fatalf("%q\nhas the normal form %q\nand that has       %q", r, normal, twice)
					}
				}
			}
		}
	})
}
