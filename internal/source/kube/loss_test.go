package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
)

// logBuffer is what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// count is how many lines have a text in them.
func (b *logBuffer) count(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func service(name, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// A server that goes away is told once, leaves all as it was, and is told once when it is back; what changed in the
// meantime then comes.
func TestServerGoesAndComesBack(t *testing.T) {
	f := newFakeServer(t, 1)
	f.put("services", service("stays", "10.0.0.1"))
	f.put("services", service("goes", "10.0.0.2"))
	log := &logBuffer{}
	c := dialFake(t, f.URL, protobuf, log.logger())
	r, _ := start(t, c)
	eventually(t, "all is known", func() bool { return r.told() == 1 && c.State().Connected })

	address := f.Listener.Addr().String()
	f.with(func() { f.faults.down = true })
	f.CloseClientConnections()
	f.Close()
	eventually(t, "the loss is told for every kind", func() bool {
		s := c.State()
		for _, k := range s.Kinds {
			if k.Connected || !strings.Contains(k.Error, "refused") {
				return false
			}
		}
		return !s.Connected && s.Synced && strings.Contains(s.Error, "refused")
	})
	f.put("services", service("comes", "10.0.0.3"))
	f.remove("services", model.Name{Namespace: "a", Name: "goes"})
	time.Sleep(10 * quick.most) // for some tries more
	if r.told() != 1 {
		t.Errorf("%d changes were told while the server was away", r.told()-1)
	}

	f.with(func() { f.faults.down = false })
	var listener net.Listener
	eventually(t, "nobody else has the address", func() (is bool) {
		var err error
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		return err == nil
	})
	f.Server = httptest.NewUnstartedServer(f)
	f.Listener.Close()
	f.Listener = listener
	f.Start()
	want := f.state(t, "node-a")
	eventually(t, "the receiver has what the server has", func() bool { return r.diff(want) == "" && c.State().Connected })
	if lost, back := log.count("is lost"), log.count("is back"); lost != 1 || back != 1 {
		t.Errorf("said to be lost %d times and to be back %d times, want 1 and 1:\n%s", lost, back, log)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines are logged, want 2:\n%s", n, log)
	}
}

// A server that is restored from a backup knows less than the client does.
func TestServerGoesBackInTime(t *testing.T) {
	f := newFakeServer(t, 1)
	f.put("services", service("old", "10.0.0.1"))
	c := dialFake(t, f.URL, protobuf, nil)
	r, _ := start(t, c)
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	f.put("services", service("new", "10.0.0.2"))
	f.remove("services", model.Name{Namespace: "a", Name: "old"})
	want := f.state(t, "node-a")
	eventually(t, "the changes are known", func() bool { return r.diff(want) == "" })
	f.restore(2)
	want = f.state(t, "node-a")
	eventually(t, "the past is known", func() bool { return r.diff(want) == "" })
	if f.saw("too new") == 0 {
		t.Error("the client did not ask for what the server does not have")
	}
}

// Who finds the server again wakes up the others.
func TestOneKindWakesTheOthers(t *testing.T) {
	f := newFakeServer(t, 1)
	f.faults.forbidden = map[string]int{"services": 503, "endpointslices": 503, "nodes": 503, "servicecidrs": 503}
	c := dialFake(t, f.URL, protobuf, nil)
	c.pace.first, c.pace.most = time.Hour, time.Hour
	r, _ := start(t, c)
	eventually(t, "the loss is told for every kind", func() bool {
		for _, k := range c.State().Kinds {
			if k.Error == "" {
				return false
			}
		}
		return true
	})
	f.with(func() { f.faults.forbidden = nil })
	eventually(t, "all is known", func() bool {
		// Again and again, since it may come just before another begins to wait.
		c.link.of(nodeKind).failed(errors.New("away"))
		c.link.of(nodeKind).watching()
		return r.told() == 1
	})
}

// Rights that come back for one kind are tried for the others at once, though some are asked for at a slow pace.
func TestRightsComeBack(t *testing.T) {
	f := newFakeServer(t, 1)
	f.put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
	f.faults.forbidden = map[string]int{"services": 403, "nodes": 403, "servicecidrs": 403}
	c := dialFake(t, f.URL, protobuf, nil)
	c.pace.slow = time.Hour
	r, _ := start(t, c)
	eventually(t, "all are refused", func() bool {
		return f.saw("forbidden services") > 0 && f.saw("forbidden nodes") > 0 && f.saw("forbidden servicecidrs") > 0
	})
	time.Sleep(10 * quick.most) // until those that are asked for at a slow pace wait
	f.with(func() { f.faults.forbidden = nil })
	want := f.state(t, "node-a")
	eventually(t, "all is known", func() bool {
		// Again and again, since it may come just before another begins to wait.
		c.link.of(serviceKind).failed(apierrors.NewUnauthorized("no"))
		c.link.of(serviceKind).watching()
		return r.diff(want) == ""
	})
}

// Watch ends when its context does, however long it would wait for the next try.
func TestEndsWhileServerIsAway(t *testing.T) {
	f := newFakeServer(t, 1)
	f.Close()
	c := dialFake(t, f.URL, protobuf, nil)
	c.pace = pace{first: time.Hour, most: time.Hour, slow: time.Hour, patience: time.Hour}
	_, stop := start(t, c)
	eventually(t, "the loss is told", func() bool { return strings.Contains(c.State().Error, "refused") })
	stop()
}

// A refusal is told in the words of the server, once, and the server is asked again.
func TestServicesAreForbidden(t *testing.T) {
	f := newFakeServer(t, 1)
	f.put("services", service("a", "10.0.0.1"))
	f.faults.forbidden = map[string]int{"services": 403}
	log := &logBuffer{}
	c := dialFake(t, f.URL, protobuf, log.logger())
	r, _ := start(t, c)
	eventually(t, "the server is asked some times", func() bool { return f.saw("forbidden services") > 6 })
	s := c.State()
	if s.Connected || s.Synced || !strings.Contains(s.Error, "services is forbidden: no") || r.told() > 0 {
		t.Errorf("%d changes are told, and the state is %+v", r.told(), s)
	}
	if n := log.count("refuses a kind of objects"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, log)
	}
	f.with(func() { f.faults.forbidden = nil })
	want := f.state(t, "node-a")
	eventually(t, "all is known", func() bool { return r.diff(want) == "" && c.State().Connected })
	if n := log.count("no longer refuses"); n != 1 {
		t.Errorf("the end is told %d times, want once:\n%s", n, log)
	}
}

// What a plan works without is not waited for if it is refused, and comes when it is allowed.
func TestOptionalKindsAreForbidden(t *testing.T) {
	for _, status := range []int{403, 404} {
		f := newFakeServer(t, 1)
		f.put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
		f.faults.forbidden = map[string]int{"servicecidrs": status, "nodes": status}
		c := dialFake(t, f.URL, protobuf, nil)
		r, stop := start(t, c)
		eventually(t, "the first change is told", func() bool { return r.told() == 1 })
		if k := c.State().Kinds[2]; k.Kind != nodeKind || !strings.Contains(k.Error, "forbidden") {
			t.Errorf("the state is %+v", k)
		}
		eventually(t, "the rest is being watched", func() bool { return c.State().Connected })
		f.with(func() { f.faults.forbidden = nil })
		want := f.state(t, "node-a")
		eventually(t, "all is known", func() bool { return r.diff(want) == "" })
		stop()
	}
}

// What a plan works without is not waited for either if it gives errors for ever.
func TestOptionalKindsAreBroken(t *testing.T) {
	f := newFakeServer(t, 1)
	f.faults.forbidden = map[string]int{"servicecidrs": 503, "nodes": 503}
	c := dialFake(t, f.URL, protobuf, nil)
	c.pace.patience = impatient
	r, _ := start(t, c)
	eventually(t, "the first change is told", func() bool { return r.told() == 1 })
}
