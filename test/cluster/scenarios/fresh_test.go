package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/test/cluster"
)

// checkFresh compares what each node's kernel has with what a fresh start makes of the same objects. It does so twice:
// the objects as kubectl shows them are handed to `sluice diff`, and the daemon is started anew and must have nothing to
// write.
func (b *bench) checkFresh(t *testing.T) {
	t.Helper()
	for _, p := range b.proxies {
		cluster.WaitFor(t, p.Name+" to be as a fresh start", func() error { return b.fresh(t, p) })
	}
}

// errMoved occurs when the objects changed while they were compared with.
var errMoved = errors.New("the objects changed meanwhile")

func (b *bench) fresh(t *testing.T, p *cluster.Proxy) error {
	t.Helper()
	if err := b.nobodyLeaves(t); err != nil {
		return err
	}
	objects := b.objects(t)
	if out, err := p.Node.TrySluice(t, objects, "diff", "--manifests=-", "--config="+p.Config); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := settled(t, p); err != nil {
		return err
	}
	p.Stop(t)
	p.Start(t)
	cluster.WaitFor(t, p.Name+" to be in sync", func() error { return settled(t, p) })
	status, err := report(t, p)
	switch {
	case err != nil:
		return err
	case b.objects(t) != objects:
		return errMoved
	case len(status.Ports) == 0:
		t.Fatalf("%s serves nothing, so that there is nothing to compare", p.Name)
	case status.Applied.Written > 0:
		t.Fatalf("%s was started anew and wrote %d objects:\n%s", p.Name, status.Applied.Written, tail(p.Log()))
	}
	return nil
}

// nobodyLeaves is the error that a pod is being deleted: endpoints change once more when it has gone.
func (b *bench) nobodyLeaves(t *testing.T) error {
	t.Helper()
	pods, err := b.Client.CoreV1().Pods(v1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s/%s is still leaving", pod.Namespace, pod.Name)
		}
	}
	return nil
}

// objects are all that a proxy reads.
func (b *bench) objects(t *testing.T) string {
	t.Helper()
	return b.Kubectl(t, "", "get", "services,endpointslices,nodes,servicecidrs", "--all-namespaces", "--output=yaml", "--show-managed-fields=false")
}

// statusReport is what the tests need of `sluice status -o json`.
type statusReport struct {
	Mode    string
	Healthy bool
	Applied *struct{ Times, Failures, Written int }
	API     struct{ Connected bool }
	Ports   []struct{ Namespace, Name, State string } `json:"servicePorts"`
}

func report(t *testing.T, p *cluster.Proxy) (r statusReport, err error) {
	t.Helper()
	out, err := p.Node.TrySluice(t, "", "status", "--output=json")
	if jsonErr := json.Unmarshal([]byte(out), &r); jsonErr != nil {
		return r, fmt.Errorf("%w; %w", err, jsonErr)
	}
	return r, nil
}

// settled is the error that a daemon has not written all that it knows.
func settled(t *testing.T, p *cluster.Proxy) error {
	t.Helper()
	r, err := report(t, p)
	if err != nil {
		return fmt.Errorf("%w; its log ends with\n%s", err, tail(p.Log()))
	}
	var open []string
	for _, port := range r.Ports {
		if port.State != "done" {
			open = append(open, fmt.Sprintf("%s/%s is %s", port.Namespace, port.Name, port.State))
		}
	}
	if !r.Healthy || !r.API.Connected || r.Applied == nil || r.Applied.Failures > 0 || len(open) > 0 {
		return fmt.Errorf("it says %+v; %s", r, strings.Join(open, ", "))
	}
	return nil
}

// tail is the end of a log, as much as a person reads.
func tail(log string) string { return log[max(0, len(log)-4000):] }
