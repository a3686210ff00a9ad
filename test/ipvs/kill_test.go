package ipvs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sluice/internal/kernel/ipvs"
	"sluice/internal/model"
)

// found is all that the kernel has: virtual servers with what they have been sent, and their destinations.
func (st *stage) found() map[ipvs.FoundServer][]ipvs.FoundDestination {
	st.Helper()
	servers, err := st.kernel.Servers()
	st.must(err)
	all := map[ipvs.FoundServer][]ipvs.FoundDestination{}
	for _, s := range servers {
		all[s], err = st.kernel.Destinations(s.Name)
		st.must(err)
	}
	return all
}

// kept is what a restart leaves alone, without the numbers that go on meanwhile.
func kept(found map[ipvs.FoundServer][]ipvs.FoundDestination) map[ipvs.Server][]ipvs.Destination {
	all := map[ipvs.Server][]ipvs.Destination{}
	for s, destinations := range found {
		for _, d := range destinations {
			all[s.Server] = append(all[s.Server], d.Destination)
		}
	}
	return all
}

// counted waits until a Service was sent so many connections: the kernel adds up its counters every two seconds.
func (st *stage) counted(web *service, want uint64) {
	st.Helper()
	st.eventually(func() error {
		for s := range st.found() {
			if s.Name == web.server() && s.Connections == want {
				return nil
			}
		}
		return fmt.Errorf("%s was not sent %d connections: %+v", web.name, want, st.found())
	})
}

// endpoints waits until the kernel has so many of a Service, those that drain included.
func (st *stage) endpoints(of *service, want int) {
	st.Helper()
	st.eventually(func() error {
		all, err := st.kernel.Destinations(of.server())
		if err == nil && len(all) != want {
			err = fmt.Errorf("%s has %d endpoints, want %d: %+v", of.name, len(all), want, all)
		}
		return err
	})
}

// A daemon that is killed leaves everything as it is, and the next one takes it over: weights, connections, counters, and
// what drains.
func TestKill(t *testing.T) {
	web := &service{
		name: "web", ip: "10.96.0.40", port: 80, protocol: model.TCP, endpoints: pods(0, 2),
		annotations: []string{"sluice.dev/ipvs-scheduler: wrr", `sluice.dev/weights: "pod-10=3, pod-11=1"`},
	}
	st := open(t, web)
	d := st.start()
	conn, gone := st.connect(web)
	web.endpoints = []netip.Addr{pod(2)}
	st.write()
	st.settle()
	st.spread(web, 5)
	st.counted(web, 6)
	st.endpoints(web, 2) // the one that has a connection stays, and the other that goes does not
	before := kept(st.found())

	d.Kill()
	st.must(conn.Echo("without a daemon?"))
	d = st.start()
	if after := kept(st.found()); !reflect.DeepEqual(before, after) {
		t.Errorf("virtual servers before the kill: %+v\nand after a restart: %+v", before, after)
	}
	st.counted(web, 6)
	st.must(conn.Echo("with the next one?"))
	if has, ok := st.destination(web, gone); !ok || has.Weight != 0 || has.Active != 1 {
		t.Errorf("an endpoint that goes, and has a connection: %+v, there: %t", has, ok)
	}

	d.Kill()
	web.endpoints = pods(2, 4)
	st.write()
	d = st.start()
	if got := st.spread(web, 4); got[pod(2)] != 2 || got[pod(3)] != 2 {
		t.Errorf("what changed while there was no daemon: %v", got)
	}
	st.must(conn.Echo("with the one after it?"))
	st.must(conn.Close())
	for _, complaint := range d.Complaints() {
		t.Errorf("the daemon complained: %s", complaint)
	}
}

const excludes = `
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
ipvs: {excludeCIDRs: [10.96.0.50/32]}
`

// Virtual servers of others stay: those at addresses that are no Service's, and all in ranges that are excluded, though
// they are at a Service's address. One that is at such an address, and not excluded, is in the way.
func TestForeign(t *testing.T) {
	excluded := &service{name: "excluded", ip: "10.96.0.50", port: 80, protocol: model.TCP, endpoints: pods(0, 2)}
	other := &service{name: "other", ip: "10.96.0.51", port: 80, protocol: model.TCP, endpoints: pods(0, 2)}
	st := open(t, excluded, other)
	foreign := []ipvs.Server{foreignServer("203.0.113.200:80"), foreignServer("10.96.0.50:81")}
	for _, s := range append(foreign, foreignServer("10.96.0.51:81")) {
		st.must(st.kernel.Add(s))
		st.must(st.kernel.AddDestination(s.Name, foreignDestination))
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	st.must(os.WriteFile(config, []byte(excludes), 0o600))
	d := st.start("--config", config)
	st.checkForeign(foreign, 2)
	excluded.endpoints = pods(1, 3)
	st.write()
	st.settle("--config", config)
	st.checkForeign(foreign, 2)
	d.Stop()
	_, err := st.sluice("cleanup", "--config", config)
	st.must(err)
	st.checkForeign(foreign, 0)
	_, err = st.sluice("cleanup") // no configuration tells it of ranges
	st.must(err)
	st.checkForeign(foreign[:1], 0)
}

var foreignDestination = ipvs.Destination{AddrPort: netip.MustParseAddrPort("10.244.2.99:80"), Weight: 7}

func foreignServer(at string) ipvs.Server {
	a := netip.MustParseAddrPort(at)
	return ipvs.Server{Name: ipvs.Name{Addr: a.Addr(), Protocol: ipvs.TCP, Port: a.Port()}, Scheduler: "sed"}
}

// checkForeign waits until there are those of others and a number of ours, for what was in the way drains first.
func (st *stage) checkForeign(foreign []ipvs.Server, ours int) {
	st.Helper()
	var found map[ipvs.FoundServer][]ipvs.FoundDestination
	st.eventually(func() error {
		if found = st.found(); len(found) != len(foreign)+ours {
			return fmt.Errorf("%d virtual servers, want %d: %+v", len(found), len(foreign)+ours, found)
		}
		return nil
	})
	for _, s := range foreign {
		want := []ipvs.FoundDestination{{Destination: foreignDestination}}
		if got := found[ipvs.FoundServer{Server: s}]; !reflect.DeepEqual(got, want) {
			st.Errorf("%s has %+v, want %+v", s.Name, got, want)
		}
	}
}
