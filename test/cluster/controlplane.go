package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"sluice/internal/kernel/netns"
	"sluice/internal/lab"
)

// ControlPlane is what the cluster's API is made of. Every part may be stopped, killed and started again; etcd keeps
// its data, and kube-apiserver its address and keys.
type ControlPlane struct {
	Etcd, APIServer, Controllers *Process

	host   *lab.Host
	folder string
	ca     keyPair
	admin  keyPair
}

// admins is the group that may do everything.
const admins = "system:masters"

func startControlPlane(t testing.TB, host *lab.Host, folder string, o Options) *ControlPlane {
	t.Helper()
	p := &ControlPlane{host: host, folder: folder}
	if err := p.writeKeys(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := os.MkdirTemp("/run", "etcd-") //nolint:usetesting // this one is in memory, and gone with the tests' mounts
	if err != nil {
		t.Fatal(err)
	}
	p.Etcd = p.process(t, "etcd", etcdFlags(data))
	p.APIServer = p.process(t, "kube-apiserver", p.apiServerFlags(o))
	p.Controllers = p.process(t, "kube-controller-manager", p.controllerFlags(o))
	t.Cleanup(func() {
		for _, process := range []*Process{p.Controllers, p.APIServer, p.Etcd} {
			process.finish(t, syscall.SIGKILL) // nobody misses what they would write down
		}
	})
	p.Etcd.Start(t)
	p.APIServer.Start(t)
	p.WaitReady(t)
	p.Controllers.Start(t)
	return p
}

// process is a program on the control plane's machine.
func (p *ControlPlane) process(t testing.TB, name string, flags []string) *Process {
	t.Helper()
	path := program(t, name)
	return newProcess(name, p.folder, func() *netns.Cmd {
		cmd := p.host.Command(context.Background(), path, flags...)
		cmd.Env = append(os.Environ(), "GOGC=200") // two processors: rather memory than time
		return cmd
	})
}

func (p *ControlPlane) writeKeys() error {
	var err error
	if p.ca, err = newAuthority(); err != nil {
		return err
	}
	server := identity{
		name:     "kube-apiserver",
		dnsNames: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"},
		addresses: []net.IP{
			net.ParseIP(apiAddress), net.ParseIP(apiAddress6), net.ParseIP("127.0.0.1"), net.ParseIP("10.96.0.1"), net.ParseIP("fd00:96::1"),
		},
	}
	pairs := map[string]keyPair{"ca": p.ca}
	for name, id := range map[string]identity{
		"apiserver":   server,
		"accounts":    {name: "service-accounts"},
		"admin":       {name: "admin", groups: []string{admins}},
		"controllers": {name: "system:kube-controller-manager", groups: []string{admins}},
	} {
		if pairs[name], err = p.ca.issue(id); err != nil {
			return err
		}
	}
	p.admin = pairs["admin"]
	for name, pair := range pairs {
		if err := pair.write(p.folder, name); err != nil {
			return err
		}
	}
	if err := p.writeKubeconfig("admin", pairs["admin"].user()); err != nil {
		return err
	}
	return p.writeKubeconfig("controllers", pairs["controllers"].user())
}

// auditPolicy has every request written down once, when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// file is the path of one of the cluster's files.
func (p *ControlPlane) file(name string) string { return filepath.Join(p.folder, name) }

func (p *ControlPlane) apiServerFlags(o Options) []string {
	flags := []string{
		"--etcd-servers=" + etcdURL, "--etcd-compaction-interval=0",
		"--bind-address=::", "--secure-port=" + apiPort, "--advertise-address=" + apiAddress,
		"--tls-cert-file=" + p.file("apiserver.crt"), "--tls-private-key-file=" + p.file("apiserver.key"),
		"--client-ca-file=" + p.file("ca.crt"),
		"--service-account-key-file=" + p.file("accounts.pub"), "--service-account-signing-key-file=" + p.file("accounts.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=RBAC", "--service-cluster-ip-range=" + ServiceRanges, "--allow-privileged=true",
		// Pods need no token here, and nobody takes the taint of a new node away.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--request-timeout=10s", // also how long it waits for open watches when it is stopped
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false",
	}
	if o.AuditLog {
		policy := p.file("audit-policy.yaml")
		flags = append(flags, "--audit-policy-file="+policy, "--audit-log-path="+p.file("audit.log"))
	}
	return append(flags, o.APIServerFlags...)
}

// controllers are those that make Services, their endpoints, and the pods of workloads.
const controllers = "endpointslice-controller,endpoints-controller,endpointslice-mirroring-controller,replicaset-controller," +
	"deployment-controller,daemonset-controller,statefulset-controller,namespace-controller,serviceaccount-controller," +
	"garbage-collector-controller,service-cidr-controller,root-ca-certificate-publisher-controller"

func (p *ControlPlane) controllerFlags(o Options) []string {
	return append([]string{
		"--kubeconfig=" + p.file("controllers.kubeconfig"), "--controllers=" + controllers,
		"--service-account-private-key-file=" + p.file("accounts.key"), "--root-ca-file=" + p.file("ca.crt"),
		"--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000", "--secure-port=0",
	}, o.ControllerFlags...)
}

// WaitReady waits until the API server says that it is.
func (p *ControlPlane) WaitReady(t testing.TB) {
	t.Helper()
	client := p.client(t)
	WaitFor(t, "the API server to be ready", func() error {
		for _, process := range []*Process{p.Etcd, p.APIServer} {
			if err := process.fate(); err != nil {
				return hopeless{err}
			}
		}
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx())
		return err
	})
}

// Config is how a client-go client of the test program reaches the API server, as cluster administrator.
func (p *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host: url(),
		QPS:  -1,
		Dial: dialer(p.host),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: p.ca.certPEM(), CertData: p.admin.certPEM(), KeyData: p.admin.keyPEM(),
		},
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}

func (p *ControlPlane) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// dialer opens connections from a machine of the lab.
func dialer(h *lab.Host) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = h.Do(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// user is a certificate's entry in a kubeconfig.
func (p keyPair) user() string {
	return fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s", inBase64(p.certPEM()), inBase64(p.keyPEM()))
}

// writeKubeconfig makes NAME.kubeconfig for a user.
func (p *ControlPlane) writeKubeconfig(name, user string) error {
	text := strings.NewReplacer("SERVER", url(), "CA", inBase64(p.ca.certPEM()), "CREDENTIALS", user).Replace(`apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: SERVER
    certificate-authority-data: CA
users:
- name: test
  user:
    CREDENTIALS
contexts:
- name: test
  context:
    cluster: test
    user: test
current-context: test
`)
	return os.WriteFile(p.file(name+".kubeconfig"), []byte(text), 0o600)
}
