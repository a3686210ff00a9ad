package kube

import (
	"context"
	"log/slog"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Reference names the object that an Event is about.
type Reference struct {
	Object
	// UID may be empty, as it is for kube-proxy's Events. `kubectl describe node` finds Events whose UID is the Node's
	// name.
	UID string
}

const (
	// eventQueue is how many Events wait at most, as in client-go.
	eventQueue = 1000
	// eventTries is how often an Event is sent at most.
	eventTries = 12
	// eventRetry is how long to wait between two tries.
	eventRetry = 10 * time.Second
	// eventTimeout is how long one try takes at most.
	eventTimeout = 30 * time.Second
)

// Recorder writes Events about Nodes and Services to the API server. An Event that comes again is not written again:
// the first one gets a count, which is brought up to date from time to time.
type Recorder struct {
	log       *slog.Logger
	rest      rest.Interface
	component string // what API objects call the reporting controller
	instance  string
	queue     chan *eventsv1.Event
	retry     time.Duration
	series    series
}

// Recorder makes a Recorder whose Events name a component, such as "kube-proxy", on a host. It needs to Run.
func (c *Client) Recorder(component, host string) *Recorder {
	return &Recorder{
		log: c.log, rest: c.groups[eventsV1], component: component, instance: cut(component+"-"+host, maxInstance),
		queue: make(chan *eventsv1.Event, eventQueue), retry: eventRetry, series: series{},
	}
}

// Event is to be written. It never blocks: with too many waiting, it is dropped. The type is "Normal" or "Warning";
// reason and action are one word each in upper camel case.
func (r *Recorder) Event(about Reference, typ, reason, action, note string) {
	e := newEvent(about, time.Now())
	e.Type, e.Reason, e.Action, e.Note = typ, reason, action, cut(note, maxNote)
	e.ReportingController, e.ReportingInstance = r.component, r.instance
	select {
	case r.queue <- e:
	default:
		r.log.Debug("an Event is dropped, since too many wait", "about", about.String(), "reason", reason)
	}
}

// Run writes Events until ctx ends. Those that then wait are not written.
func (r *Recorder) Run(ctx context.Context) {
	sweep := time.NewTicker(seriesQuiet / 2)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.queue:
			if due := r.series.add(e, time.Now()); due != nil {
				r.send(ctx, due)
			}
		case now := <-sweep.C:
			for _, e := range r.series.sweep(now) {
				r.send(ctx, e)
			}
		}
	}
}

// send tries to write an Event until it is written, refused or tried often enough.
func (r *Recorder) send(ctx context.Context, e *eventsv1.Event) {
	for try := 1; ; try++ {
		err := r.write(ctx, e)
		if err == nil {
			return
		}
		if faultOf(err) == refused || try == eventTries || ctx.Err() != nil {
			r.log.Debug("an Event is dropped", "about", e.Regarding.Kind+" "+e.Regarding.Name, "reason", e.Reason, "error", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.Jitter(r.retry, 0.25)):
		}
	}
}
