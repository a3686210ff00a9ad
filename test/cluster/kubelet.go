package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Annotations of a Pod by which a test tells the kubelet what a probe or a program would.
const (
	// ReadyAnnotation is the pod's readiness: "false" makes it not ready, all else ready.
	ReadyAnnotation = "sluice.test/ready"
	// LingerAnnotation is how long this pod still serves after its deletion, as a Go duration; its grace period does not
	// shorten it.
	LingerAnnotation = "sluice.test/linger"
)

// kubelet is that of all nodes, and the scheduler.
type kubelet struct {
	client kubernetes.Interface
	nodes  []*Node
	linger time.Duration
	pods   corev1.PodLister
	queue  workqueue.TypedRateLimitingInterface[string]
	stop   context.CancelFunc
	wg     sync.WaitGroup
	turn   turn
	log    func(format string, args ...any)

	mu      sync.Mutex // guards the following
	running map[string]*sandbox
	ipams   map[string]*ipam
}

// workers is how many pods are worked on at a time: requests to the API server are what takes long.
const workers = 8

// startKubelet registers the nodes and runs their pods until the test ends.
func startKubelet(t testing.TB, c *Cluster) *kubelet {
	t.Helper()
	running, stop := context.WithCancel(context.Background())
	k := &kubelet{
		client: c.Client, nodes: c.nodes, linger: c.options.linger(), stop: stop, log: t.Logf,
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, time.Second)),
		running: map[string]*sandbox{}, ipams: map[string]*ipam{},
	}
	for _, n := range c.nodes {
		k.ipams[n.Name] = newIPAM(podRanges(n.index))
		if _, err := c.Client.CoreV1().Nodes().Create(ctx(), n.object(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(k.close)
	if err := k.watch(running); err != nil {
		t.Fatal(err)
	}
	for range workers {
		k.wg.Go(func() {
			for k.next() {
			}
		})
	}
	return k
}

// watch puts every Pod that changes into the queue.
func (k *kubelet) watch(running context.Context) error {
	factory := informers.NewSharedInformerFactory(k.client, 0)
	pods := factory.Core().V1().Pods()
	k.pods = pods.Lister()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			k.queue.Add(key)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	factory.Start(running.Done())
	k.wg.Go(func() {
		<-running.Done()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(running.Done(), pods.Informer().HasSynced) {
		return fmt.Errorf("the kubelet hears of no pods")
	}
	return nil
}

func (k *kubelet) close() {
	k.stop()
	k.queue.ShutDown()
	k.wg.Wait()
}

// next works on one pod. What fails is tried again: the API server may be down, which is what some tests are about.
func (k *kubelet) next() bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)
	after, err := k.sync(key)
	switch {
	case err != nil:
		if k.queue.NumRequeues(key) == 10 {
			k.log("kubelet: pod %s: %v", key, err)
		}
		k.queue.AddRateLimited(key)
	case after > 0:
		k.queue.AddAfter(key, after)
	default:
		k.queue.Forget(key)
	}
	return true
}

// sync makes a pod what its object says. It returns when to look again; 0 is when the object changes.
func (k *kubelet) sync(key string) (after time.Duration, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	pod, err := k.pods.Pods(namespace).Get(name)
	gone := errors.IsNotFound(err)
	if err != nil && !gone {
		return 0, err
	}
	if old := k.sandbox(key); old != nil && (gone || old.uid != pod.UID) {
		return 0, k.remove(key, old)
	}
	switch {
	case gone:
		return 0, nil
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		return 0, k.schedule(pod)
	case k.node(pod.Spec.NodeName) == nil && pod.Spec.NodeName != "":
		return 0, nil // another kubelet's
	case pod.DeletionTimestamp != nil:
		return k.terminate(key, pod)
	}
	return 0, k.run(key, pod)
}

func (k *kubelet) node(name string) *Node {
	for _, n := range k.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// schedule gives a pod a node, by turns.
func (k *kubelet) schedule(pod *v1.Pod) error {
	node, err := k.turn.choose(pod, k.nodes)
	if err != nil {
		return err
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	err = k.client.CoreV1().Pods(pod.Namespace).Bind(ctx(), binding, metav1.CreateOptions{})
	if errors.IsConflict(err) || errors.IsNotFound(err) {
		return nil // bound or deleted since, of which the watch tells
	}
	return err
}
