package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// seriesQuiet is how long an Event must not have come again for its series to be over.
	seriesQuiet = 6 * time.Minute
	// seriesRefresh is how often the count of a series is written while it goes on.
	seriesRefresh = 30 * time.Minute
	// maxSeries is how many are kept. Events beyond that are written each.
	maxSeries = 1000
)

// alike is what Events of one series have in common. The note is not part of it, so that one with a changing number
// in it makes no Events without end.
type alike struct {
	about                corev1.ObjectReference
	typ, reason, action  string
	component, reporting string
}

// lately is an Event that was written, and when its count was.
type lately struct {
	event   *eventsv1.Event
	written time.Time
}

// series are the Events of late.
type series map[alike]*lately

// add counts an Event, and is what to write of it: itself, or the first of its kind with a count, or nil.
func (s series) add(e *eventsv1.Event, now time.Time) *eventsv1.Event {
	key := alike{e.Regarding, e.Type, e.Reason, e.Action, e.ReportingController, e.ReportingInstance}
	l := s[key]
	if l == nil {
		if len(s) < maxSeries {
			s[key] = &lately{event: e.DeepCopy(), written: now}
		}
		return e
	}
	if l.event.Series != nil {
		l.event.Series.Count++
		l.event.Series.LastObservedTime = e.EventTime
		return nil
	}
	l.event.Series, l.written = &eventsv1.EventSeries{Count: 2, LastObservedTime: e.EventTime}, now
	return l.event.DeepCopy()
}

// sweep forgets the series that are over, and is the Events whose count has to be written.
func (s series) sweep(now time.Time) (due []*eventsv1.Event) {
	for key, l := range s {
		over := now.Sub(l.last().Time) > seriesQuiet
		if l.event.Series != nil && (over || now.Sub(l.written) > seriesRefresh) {
			l.written, due = now, append(due, l.event.DeepCopy())
		}
		if over {
			delete(s, key)
		}
	}
	return due
}

// last is when the Event last came.
func (l *lately) last() metav1.MicroTime {
	if l.event.Series != nil {
		return l.event.Series.LastObservedTime
	}
	return l.event.EventTime
}
