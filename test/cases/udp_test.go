package cases

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/lab"
)

// entry adds one to connection tracking as conntrack(8) takes it.
func (st *stage) entry(text string) {
	st.Helper()
	st.node("", "conntrack", append([]string{"-I"}, strings.Fields(text)...)...)
}

// remembered lists which of the clients' ports connection tracking still knows.
func (st *stage) remembered(ports ...int) (known []int) {
	st.Helper()
	all := st.node("", "conntrack", "-L")
	for _, p := range ports {
		if strings.Contains(all, fmt.Sprintf(" sport=%d ", p)) {
			known = append(known, p)
		}
	}
	return known
}

func (st *stage) wantRemembered(want []int, ports ...int) {
	st.Helper()
	st.eventually(func() error {
		if got := st.remembered(ports...); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("connection tracking knows the client ports %v, want %v", got, want)
		}
		return nil
	})
}

// send sends a datagram from one client port and returns which server answered.
func send(h *lab.Host, from, to netip.AddrPort) (answer string, err error) {
	err = h.Do(func() error {
		c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		b := make([]byte, 200)
		n, err := c.Read(b)
		answer = string(b[:n])
		return err
	})
	return answer, err
}

// Flows that were remembered without translation are forgotten when the first endpoint comes, so that the same socket
// reaches it; one to a port that is no Service's stays.
func TestUDPClientsThatSentBeforeTheFirstEndpoint(t *testing.T) {
	st := open(t, "udp-first-endpoint-arrives")
	st.objects(1)
	st.start()
	st.eventually(func() error {
		if !strings.Contains(st.node("", "iptables-save"), "KUBE-SERVICES") {
			return fmt.Errorf("the daemon has written nothing yet")
		}
		return nil
	})
	untranslated := "-p udp -t 300 -s %s -d %s --sport %d --dport %d -r %[2]s -q %[1]s --reply-port-src %[4]d --reply-port-dst %[3]d"
	st.entry(fmt.Sprintf(untranslated, "10.244.1.50", "10.96.30.14", 40011, 8125))
	st.entry(fmt.Sprintf(untranslated, "203.0.113.77", "192.168.10.11", 40012, 30160))
	st.entry(fmt.Sprintf(untranslated, "203.0.113.77", "192.168.10.11", 40013, 30161))
	st.objects(2)
	st.flows(1)
	st.wantRemembered([]int{40013}, 40011, 40012, 40013)
	answer, err := send(st.lab.Host("pods-a"), netip.MustParseAddrPort("10.244.1.50:40011"), netip.MustParseAddrPort("10.96.30.14:8125"))
	if err != nil || !strings.HasPrefix(answer, "10.244.2.94:8125 saw 10.244.1.50:") {
		t.Errorf("the socket that sent before got %q, %v", answer, err)
	}
}

// When a UDP Service goes, its flows go, translated or not; TCP, other Services and direct flows to the pod stay.
func TestUDPServiceThatGoes(t *testing.T) {
	st := open(t, "udp-service-deleted")
	st.objects(1)
	st.start()
	st.eventually(func() error {
		if !strings.Contains(st.node("", "iptables-save"), "10.244.2.94:8125") {
			return fmt.Errorf("the daemon has not written the Service yet")
		}
		return nil
	})
	for _, e := range []string{
		"-p udp -t 300 -s 10.244.1.50 -d 10.96.30.14 --sport 40001 --dport 8125 -r 10.244.2.94 -q 10.244.1.50 --reply-port-src 8125 --reply-port-dst 40001",
		"-p udp -t 300 -s 203.0.113.77 -d 192.168.10.11 --sport 40002 --dport 30160 -r 10.244.2.94 -q 192.168.10.11 --reply-port-src 8125 --reply-port-dst 61002",
		"-p tcp -t 300 --state ESTABLISHED -u ASSURED,SEEN_REPLY -s 10.244.1.50 -d 10.96.30.14 --sport 40003 --dport 8126 -r 10.244.2.94 -q 10.244.1.50 --reply-port-src 8126 --reply-port-dst 40003",
		"-p udp -t 300 -u SEEN_REPLY -s 10.244.1.50 -d 10.96.0.10 --sport 40004 --dport 53 -r 10.244.1.5 -q 10.244.1.50 --reply-port-src 53 --reply-port-dst 40004",
		"-p udp -t 300 -u SEEN_REPLY -s 10.244.1.51 -d 10.244.2.94 --sport 40005 --dport 8125 -r 10.244.2.94 -q 10.244.1.51 --reply-port-src 8125 --reply-port-dst 40005",
	} {
		st.entry(e)
	}
	all := []int{40001, 40002, 40003, 40004, 40005}
	st.wantRemembered(all, all...)
	st.objects(2)
	st.wantRemembered([]int{40003, 40004, 40005}, all...)
	st.flows(1)
}
