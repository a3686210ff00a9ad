package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// sandbox is a pod that runs: its addresses and the servers behind its ports.
type sandbox struct {
	uid     types.UID
	node    *Node
	host    *lab.Host // the machine that has its addresses
	addrs   []netip.Addr
	own     bool // the addresses are its own, not the node's
	servers []*lab.Server
	since   metav1.Time
	ready   *bool     // as last told to the API server
	last    time.Time // when it stops to serve; zero until it is deleted
}

func (k *kubelet) sandbox(key string) *sandbox {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[key]
}

// run starts a pod, unless it runs, and tells its status.
func (k *kubelet) run(key string, pod *v1.Pod) error {
	s := k.sandbox(key)
	if s == nil {
		var err error
		if s, err = k.launch(key, pod); err != nil {
			return err
		}
	}
	ready := pod.Annotations[ReadyAnnotation] != "false"
	if s.ready != nil && *s.ready == ready {
		return nil
	}
	if err := k.tell(pod, s.status(pod, ready)); err != nil {
		return err
	}
	s.ready = &ready
	return nil
}

// launch gives a pod its addresses and servers.
func (k *kubelet) launch(key string, pod *v1.Pod) (*sandbox, error) {
	node := k.node(pod.Spec.NodeName)
	s := &sandbox{uid: pod.UID, node: node, host: node.Pods, own: !pod.Spec.HostNetwork, since: metav1.Now()}
	if !s.own {
		s.host, s.addrs = node.Host, node.Addresses
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.own {
		var err error
		if s.addrs, err = k.ipams[node.Name].take(); err != nil {
			return nil, err
		}
	}
	k.running[key] = s
	if err := s.serve(pod); err != nil {
		return nil, errors.Join(err, k.discard(key, s))
	}
	return s, nil
}

// serve answers on every port of the pod: by TCP and UDP both, or by SCTP if the pod says so.
func (s *sandbox) serve(pod *v1.Pod) error {
	for at, protocols := range listeners(pod) {
		for _, protocol := range protocols {
			server, err := s.host.Serve(protocol, s.on(at)...)
			if err != nil {
				return err
			}
			s.servers = append(s.servers, server)
		}
	}
	return nil
}

// on is a port on each of the pod's addresses.
func (s *sandbox) on(port uint16) (all []netip.AddrPort) {
	for _, a := range s.addrs {
		all = append(all, netip.AddrPortFrom(a, port))
	}
	return all
}

// listeners are the ports of a pod and how it answers there.
func listeners(pod *v1.Pod) map[uint16][]model.Protocol {
	all := map[uint16][]model.Protocol{}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			all[uint16(p.ContainerPort)] = []model.Protocol{model.TCP, model.UDP}
			if p.Protocol == v1.ProtocolSCTP {
				all[uint16(p.ContainerPort)] = []model.Protocol{model.SCTP}
			}
		}
	}
	return all
}

// terminate lets a deleted pod serve a while longer, and then removes it.
func (k *kubelet) terminate(key string, pod *v1.Pod) (after time.Duration, err error) {
	if s := k.sandbox(key); s != nil {
		if s.last.IsZero() {
			s.last = time.Now().Add(k.lingers(pod))
		}
		if left := time.Until(s.last); left > 0 {
			return left, nil
		}
		if err := k.remove(key, s); err != nil {
			return 0, err
		}
	}
	err = k.client.CoreV1().Pods(pod.Namespace).Delete(ctx(), pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil // another of the same name by now
	}
	return 0, err
}

// lingers is how long a pod still serves after its deletion.
func (k *kubelet) lingers(pod *v1.Pod) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[LingerAnnotation]); err == nil {
		return d
	}
	if pod.DeletionGracePeriodSeconds == nil {
		return k.linger
	}
	return min(k.linger, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
}

// remove stops a pod.
func (k *kubelet) remove(key string, s *sandbox) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.discard(key, s)
}

// discard is remove for who holds the lock.
func (k *kubelet) discard(key string, s *sandbox) error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	if s.own {
		k.ipams[s.node.Name].free(s.addrs)
	}
	delete(k.running, key)
	return errors.Join(errs...)
}

// status is what the kubelet says of a running pod.
func (s *sandbox) status(pod *v1.Pod, ready bool) v1.PodStatus {
	is := v1.ConditionFalse
	if ready {
		is = v1.ConditionTrue
	}
	status := v1.PodStatus{Phase: v1.PodRunning, StartTime: &s.since, PodIP: s.addrs[0].String(), HostIP: s.node.Addresses[0].String()}
	for _, c := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		condition := v1.PodCondition{Type: c, Status: v1.ConditionTrue, LastTransitionTime: s.since}
		if c == v1.ContainersReady || c == v1.PodReady {
			condition.Status, condition.LastTransitionTime = is, metav1.Now()
		}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, a := range s.addrs {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: a.String()})
	}
	for _, a := range s.node.Addresses {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: a.String()})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: ready, Started: new(true),
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: s.since}},
		})
	}
	return status
}

// tell writes a pod's status.
func (k *kubelet) tell(pod *v1.Pod, status v1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted since, of which the watch tells
	}
	if err != nil {
		return fmt.Errorf("tell its status: %w", err)
	}
	return nil
}
