package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice/internal/model"
)

// eventServer keeps Events.
type eventServer struct {
	*httptest.Server
	mu     sync.Mutex // guards all that follows
	events map[string]*eventsv1.Event
	asked  []string
	broken int // so many requests fail first
	refuse bool
}

func newEventServer(t *testing.T) *eventServer {
	s := &eventServer{events: map[string]*eventsv1.Event{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	body, _ := io.ReadAll(r.Body)
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	resource := schema.GroupResource{Resource: "events"}
	switch {
	case s.broken > 0:
		s.broken--
		panic(http.ErrAbortHandler)
	case s.refuse:
		sendStatus(w, apierrors.NewForbidden(resource, name, nil).Status())
	case r.Method == http.MethodPost:
		e := &eventsv1.Event{}
		if err := json.Unmarshal(body, e); err != nil {
			sendStatus(w, apierrors.NewBadRequest(err.Error()).Status())
			return
		}
		s.events[e.Name] = e
		_, _ = w.Write(body)
	case s.events[name] == nil:
		sendStatus(w, apierrors.NewNotFound(resource, name).Status())
	default:
		if err := json.Unmarshal(body, s.events[name]); err != nil {
			sendStatus(w, apierrors.NewBadRequest(err.Error()).Status())
			return
		}
		out, _ := json.Marshal(s.events[name])
		_, _ = w.Write(out)
	}
}

// all are the Events there are, and the requests there were.
func (s *eventServer) all() (events []*eventsv1.Event, asked []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		events = append(events, e.DeepCopy())
	}
	return events, append(asked, s.asked...)
}

// record writes Events to a server until the test ends.
func record(t *testing.T, s *eventServer) *Recorder {
	t.Helper()
	c := dialFake(t, s.URL, runtime.ContentTypeJSON, nil)
	r := c.Recorder("kube-proxy", "node-a")
	r.retry = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

var (
	aboutNode    = Reference{Object: Object{Kind: "Node", Name: model.Name{Name: "node-a"}}, UID: "node-a"}
	aboutService = Reference{Object: Object{Kind: "Service", Name: model.Name{Namespace: "a", Name: "web"}}}
)

func TestEvent(t *testing.T) {
	s := newEventServer(t)
	r := record(t, s)
	r.Event(aboutNode, "Normal", "Starting", "StartKubeProxy", "")
	r.Event(aboutService, "Warning", "FailedToStartServiceHealthcheck", "Listen", strings.Repeat("é", maxNote))
	eventually(t, "both are written", func() bool { e, _ := s.all(); return len(e) == 2 })
	events, _ := s.all()
	for _, e := range events {
		if e.ReportingController != "kube-proxy" || e.ReportingInstance != "kube-proxy-node-a" || e.EventTime.IsZero() || e.Series != nil {
			t.Errorf("the Event is %+v", e)
		}
		switch about := e.Regarding; about.Kind {
		case "Node":
			if e.Namespace != "default" || about.Namespace != "" || about.Name != "node-a" || about.UID != "node-a" || e.Type != "Normal" || e.Reason != "Starting" || e.Action != "StartKubeProxy" {
				t.Errorf("the Event about the Node is %+v", e)
			}
		case "Service":
			if e.Namespace != "a" || about.Namespace != "a" || about.Name != "web" || !strings.HasPrefix(e.Name, "web.") || len(e.Note) != maxNote || !utf8.ValidString(e.Note) {
				t.Errorf("the Event about the Service is %+v", e)
			}
		}
	}
}

// An Event that comes again is one Event with a count.
func TestEventAgain(t *testing.T) {
	s := newEventServer(t)
	r := record(t, s)
	for i := range 5 {
		r.Event(aboutService, "Warning", "Failed", "Listen", fmt.Sprint("try ", i))
	}
	r.Event(aboutService, "Warning", "Other", "Listen", "")
	eventually(t, "two are written", func() bool { e, _ := s.all(); return len(e) == 2 })
	events, asked := s.all()
	if len(asked) != 3 {
		t.Errorf("the requests are %q, want two that create and one that counts", asked)
	}
	for _, e := range events {
		if e.Reason == "Failed" && (e.Series == nil || e.Series.Count != 2 || e.Note != "try 0") {
			t.Errorf("the Event is %+v", e)
		}
	}
}

func TestSeries(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) *eventsv1.Event { return newEvent(aboutService, now.Add(d)) }
	s := series{}
	first := at(0)
	if s.add(first, now) != first {
		t.Error("the first is not to be written")
	}
	if e := s.add(at(time.Minute), now.Add(time.Minute)); e == nil || e.Name != first.Name || e.Series.Count != 2 {
		t.Errorf("the second is written as %+v", e)
	}
	if e := s.add(at(2*time.Minute), now.Add(2*time.Minute)); e != nil {
		t.Errorf("the third is written as %+v", e)
	}
	if due := s.sweep(now.Add(3 * time.Minute)); len(due) > 0 || len(s) != 1 {
		t.Errorf("while it goes on, %v is written", due)
	}
	due := s.sweep(now.Add(2*time.Minute + seriesQuiet + 1))
	if len(due) != 1 || due[0].Series.Count != 3 || len(s) != 0 {
		t.Errorf("at its end, %v is written", due)
	}
	s.add(at(0), now)
	if due := s.sweep(now.Add(seriesQuiet + 1)); len(due) > 0 || len(s) != 0 {
		t.Errorf("at the end of a single Event, %v is written", due)
	}
	s.add(at(0), now)
	s.add(at(seriesRefresh), now)
	if due := s.sweep(now.Add(seriesRefresh + 1)); len(due) != 1 || len(s) != 1 {
		t.Errorf("after long, %v is written", due)
	}
}

// A series whose Event the server has forgotten begins anew, with its count.
func TestEventOfSeriesIsGone(t *testing.T) {
	s := newEventServer(t)
	r := record(t, s)
	r.Event(aboutService, "Warning", "Failed", "Listen", "")
	eventually(t, "it is written", func() bool { e, _ := s.all(); return len(e) == 1 })
	s.mu.Lock()
	clear(s.events)
	s.mu.Unlock()
	r.Event(aboutService, "Warning", "Failed", "Listen", "")
	eventually(t, "it is written again", func() bool { e, _ := s.all(); return len(e) == 1 && e[0].Series != nil && e[0].Series.Count == 2 })
}

func TestEventIsTriedAgain(t *testing.T) {
	s := newEventServer(t)
	s.broken = eventTries - 1
	r := record(t, s)
	r.Event(aboutNode, "Normal", "Starting", "StartKubeProxy", "")
	eventually(t, "it is written", func() bool { e, _ := s.all(); return len(e) == 1 })
}

// An Event that is refused, or never gets through, is in nobody's way.
func TestEventIsDropped(t *testing.T) {
	for _, test := range []struct {
		broken int
		refuse bool
		tries  int
	}{
		{broken: eventTries, tries: eventTries},
		{refuse: true, tries: 1},
	} {
		s := newEventServer(t)
		s.broken, s.refuse = test.broken, test.refuse
		r := record(t, s)
		r.Event(aboutNode, "Normal", "Starting", "StartKubeProxy", "")
		eventually(t, "it was tried", func() bool { _, asked := s.all(); return len(asked) == test.tries })
		s.mu.Lock()
		s.refuse = false
		s.mu.Unlock()
		r.Event(aboutService, "Normal", "Next", "Next", "")
		eventually(t, "the next is written", func() bool { e, _ := s.all(); return len(e) == 1 && e[0].Reason == "Next" })
	}
}

// To tell never blocks, whether or not anybody writes.
func TestEventNeverBlocks(t *testing.T) {
	r := dialFake(t, "http://192.0.2.1", runtime.ContentTypeJSON, nil).Recorder("kube-proxy", "node-a")
	for range eventQueue + 10 {
		r.Event(aboutNode, "Normal", "Starting", "StartKubeProxy", "")
	}
	if len(r.queue) != eventQueue {
		t.Errorf("%d Events wait, want %d", len(r.queue), eventQueue)
	}
}
