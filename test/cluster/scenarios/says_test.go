package scenarios

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"sluice/test/cluster"
)

// eachSays waits until each of the proxies that args name says what the rest of args asks.
func (p *player) eachSays(t *testing.T, args []string, says func(proxy *cluster.Proxy, args []string) error) {
	t.Helper()
	proxies, args := p.on(t, args)
	for _, proxy := range proxies {
		cluster.WaitFor(t, fmt.Sprintf("%s to say %v", proxy.Name, args), func() error { return says(proxy, args) })
	}
}

func (p *player) status(t *testing.T, args []string) {
	p.eachSays(t, args, func(proxy *cluster.Proxy, args []string) error {
		out, _ := proxy.Node.TrySluice(t, "", "status") // its exit status may be bad news, which is in the text
		return contains(out, args[0])
	})
}

func (p *player) healthz(t *testing.T, args []string) {
	p.eachSays(t, args, func(proxy *cluster.Proxy, args []string) error {
		code, body, err := proxy.Healthz()
		return answered(code, body, err, args)
	})
}

// answered compares an answer over HTTP with CODE and TEXT.
func answered(code int, body string, err error, args []string) error {
	if err != nil {
		return err
	}
	if want := args[0]; strconv.Itoa(code) != want {
		return fmt.Errorf("got %d, want %s:\n%s", code, want, body)
	}
	return contains(body, args[1])
}

// probe asks a health check node port as a load balancer does: from outside, at the node's address.
func (p *player) probe(t *testing.T, args []string) {
	dial := func(_ context.Context, network, address string) (conn net.Conn, err error) {
		err = p.Clients().Do(func() (err error) {
			conn, err = net.Dial(network, address)
			return err
		})
		return conn, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	host, port, _ := strings.Cut(args[0], ":")
	p.eachSays(t, args[1:], func(proxy *cluster.Proxy, want []string) error {
		at := netip.AddrPortFrom(p.addresses(t, host, proxy.Node)[0], portNumber(t, port))
		r, err := client.Get("http://" + at.String() + "/")
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		body, err := io.ReadAll(r.Body)
		return answered(r.StatusCode, string(body), err, want)
	})
}

func portNumber(t *testing.T, text string) uint16 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}

func (p *player) logs(t *testing.T, args []string) {
	p.eachSays(t, args, func(proxy *cluster.Proxy, args []string) error { return contains(proxy.Log(), args[0]) })
}

func (p *player) metric(t *testing.T, args []string) {
	p.eachSays(t, args, func(proxy *cluster.Proxy, args []string) error {
		want, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(args[0], "}"), "{")
		m := proxy.Metrics(t)
		if !m.Has(name) {
			return fmt.Errorf("there is no %s", name)
		}
		got := m.Sum(name, strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })...)
		if holds := map[string]bool{"=": got == want, ">": got > want, "<": got < want}[args[1]]; !holds {
			return fmt.Errorf("it is %g", got)
		}
		return nil
	})
}

// rewrite puts fields into a configuration file, as an editor would: by a new file that takes the place of the old one.
func rewrite(path, fields string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config := map[string]any{}
	for _, part := range []string{string(text), fields} {
		if err := yaml.Unmarshal([]byte(part), &config); err != nil {
			return err
		}
	}
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
