package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get asks over HTTP from outside. It opens a connection of its own, on the thread that is in the client's namespace.
func (st *stage) get(address string) (status int, body string, err error) {
	err = st.lab.Host("clients").Do(func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		client := http.Client{Timeout: limit, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		}}
		resp, err := client.Get("http://" + address + "/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(b)
		return err
	})
	return status, body, err
}

// wantHealthy waits for an answer that speaks of one local endpoint.
func (st *stage) wantHealthy(address string) {
	st.Helper()
	st.eventually(func() error {
		status, body, err := st.get(address)
		if err != nil {
			return err
		}
		if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(body, " ", ""), `"localEndpoints":1`) {
			return fmt.Errorf("status %d: %s", status, body)
		}
		return nil
	})
}

func TestHealthCheckNodePortAnswers(t *testing.T) {
	st := open(t, "no-host-daemon-behind-a-service-address")
	st.objects(1)
	st.start()
	st.flows(1)
	st.wantHealthy("192.168.10.11:31852")
}

// The listener goes with the Service's type, and comes with it.
func TestHealthCheckNodePortFollowsTheType(t *testing.T) {
	st := open(t, "load-balancer-becomes-cluster-ip")
	st.objects(1)
	st.start()
	st.flows(1)
	st.wantHealthy("192.168.10.11:31954")
	flows := map[int]int{2: 2, 3: 3} // of the sections that are of every mode
	for step := 2; step <= 4; step++ {
		st.objects(step)
		if n, ok := flows[step]; ok {
			st.flows(n)
		}
		st.eventually(func() error {
			if _, _, err := st.get("192.168.10.11:31954"); !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("want the connection refused, got %w", err)
			}
			return nil
		})
	}
}

// Where the node drops what comes in, Sluice opens the health check node ports and nothing else.
func TestHealthCheckNodePortBehindADroppingPolicy(t *testing.T) {
	st := open(t, "input-policy-drop")
	st.node(st.section("host rules", 1), "iptables-restore")
	before := st.node("", "iptables-save", "-t", "filter")
	st.objects(1)
	st.start()
	st.flows(1)
	st.wantHealthy("192.168.10.11:31969")
	if _, _, err := st.get("192.168.10.11:10256"); !timedOut(err) {
		t.Errorf("the daemon's own port: want silence, got %v", err)
	}
	after := st.node("", "iptables-save", "-t", "filter")
	for line := range strings.SplitSeq(before, "\n") {
		if strings.HasPrefix(line, "-A") && !strings.Contains(after, line) {
			t.Errorf("the host's own rule is gone: %s", line)
		}
	}
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
