package kill

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// The changing Services: some hundred, with about a thousand endpoints, above which all rules are written in another
// way (kube-proxy's "large cluster").
const (
	files           = 24
	servicesPerFile = 15
	mostEndpoints   = 6
)

// The ports at which every pod answers.
const (
	podTCP = 8080
	podUDP = 8081
)

// stableObjects never change. Their clients may not notice anything at all.
const stableObjects = `
apiVersion: v1
kind: Service
metadata: {name: stable-tcp}
spec:
  type: NodePort
  ipFamilyPolicy: PreferDualStack
  clusterIPs: [10.96.0.10, "fd00:96::10"]
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: stable-tcp, labels: {kubernetes.io/service-name: stable-tcp}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a}, {addresses: [10.244.2.5], nodeName: node-b}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: stable-tcp-6, labels: {kubernetes.io/service-name: stable-tcp}}
addressType: IPv6
ports: [{port: 8080}]
endpoints: [{addresses: ["fd00:244:0:1::5"], nodeName: node-a}, {addresses: ["fd00:244:0:2::5"], nodeName: node-b}]
---
apiVersion: v1
kind: Service
metadata: {name: stable-udp}
spec:
  type: NodePort
  clusterIP: 10.96.0.11
  ports: [{port: 53, protocol: UDP, targetPort: 8081, nodePort: 30053}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: stable-udp, labels: {kubernetes.io/service-name: stable-udp}}
addressType: IPv4
ports: [{port: 8081, protocol: UDP}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a}, {addresses: [10.244.2.5], nodeName: node-b}]
`

// cluster is the changing Services: what the manifests in a folder say.
type cluster struct {
	folder   string
	rnd      *rand.Rand
	services [files * servicesPerFile]service
}

// service is one of them, gone while it is not there.
type service struct {
	there     bool
	endpoints []netip.Addr
	affinity  bool
	nodePort  bool
}

// change gives the Services of one file new endpoints and writes it.
func (c *cluster) change(file int) error {
	var text strings.Builder
	for i := file * servicesPerFile; i < (file+1)*servicesPerFile; i++ {
		c.services[i] = c.draw()
		text.WriteString(c.services[i].manifest(i))
	}
	return replace(filepath.Join(c.folder, fmt.Sprintf("services-%d.yaml", file)), text.String())
}

func (c *cluster) draw() service {
	s := service{there: c.rnd.IntN(8) > 0, affinity: c.rnd.IntN(8) == 0, nodePort: c.rnd.IntN(2) == 0}
	for range c.rnd.IntN(mostEndpoints + 1) {
		a := netip.AddrFrom4([4]byte{10, 244, 1 + byte(c.rnd.IntN(2)), 10 + byte(c.rnd.IntN(200))})
		if !slices.Contains(s.endpoints, a) {
			s.endpoints = append(s.endpoints, a)
		}
	}
	return s
}

// protocol is UDP for every eighth Service.
func protocol(i int) (p model.Protocol, podPort int) {
	if i%8 == 0 {
		return model.UDP, podUDP
	}
	return model.TCP, podTCP
}

// clusterIP is that of a changing Service.
func clusterIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 96, 1 + byte(i/200), byte(i % 200)})
}

// manifest is JSON, which is quicker to read than YAML and also valid as such.
func (s service) manifest(i int) string {
	if !s.there {
		return ""
	}
	p, podPort := protocol(i)
	kind := map[bool]string{true: `"type": "NodePort", `}[s.nodePort]
	affinity := map[bool]string{true: `"sessionAffinity": "ClientIP", `}[s.affinity]
	var endpoints []string
	for _, e := range s.endpoints {
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses": ["%s"]}`, e))
	}
	nodePort := ""
	if s.nodePort {
		nodePort = fmt.Sprintf(`, "nodePort": %d`, 31000+i)
	}
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "changing-%[1]d"},
 "spec": {%[2]s%[3]s"clusterIP": "%[4]s", "ports": [{"port": 53, "protocol": "%[5]s", "targetPort": %[6]d%[7]s}]}}
{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
 "metadata": {"name": "changing-%[1]d", "labels": {"kubernetes.io/service-name": "changing-%[1]d"}},
 "addressType": "IPv4", "ports": [{"port": %[6]d, "protocol": "%[5]s"}], "endpoints": [%[8]s]}
`, i, kind, affinity, clusterIP(i), p, podPort, nodePort, strings.Join(endpoints, ", "))
}

// changeAllTheTime changes files until it is told to stop.
func (st *stage) changeAllTheTime() (stop func()) {
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			// Now and then there is quiet long enough for files to be taken as finished, else not.
			pause := time.Duration(st.cluster.rnd.IntN(120)) * time.Millisecond
			select {
			case <-done:
				ended <- nil
				return
			case <-time.After(pause):
			}
			if err := st.cluster.change(st.cluster.rnd.IntN(files)); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() { close(done); st.must(<-ended) }
}

// udpFlow is a client of a changing UDP Service that sends from one port all the time.
type udpFlow struct {
	dial lab.Dial
	to   service
}

// flows are one for each UDP Service.
func (c *cluster) flows() (fs []udpFlow) {
	for i, s := range c.services {
		if p, _ := protocol(i); p == model.UDP {
			fs = append(fs, udpFlow{lab.Dial{
				From: netip.MustParseAddr("10.244.1.250"), FromPort: uint16(20000 + i),
				To: netip.AddrPortFrom(clusterIP(i), 53), Protocol: p, Timeout: 2 * time.Second,
			}, s})
		}
	}
	return fs
}
