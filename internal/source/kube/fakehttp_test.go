package kube

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// ServeHTTP answers a list or a watch.
func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s := parseSelector(path.Base(r.URL.Path), q.Get("labelSelector"), q.Get("fieldSelector"))
	f.mu.Lock()
	faults := f.faults
	f.mu.Unlock()
	switch {
	case faults.down || f.chance("break", faults.break_):
		panic(http.ErrAbortHandler)
	case faults.forbidden[s.resource] != 0:
		f.count("forbidden " + s.resource)
		sendStatus(w, metav1.Status{Code: int32(faults.forbidden[s.resource]), Reason: metav1.StatusReasonForbidden, Message: s.resource + " is forbidden: no"})
	case f.chance("refuse", faults.refuse):
		sendStatus(w, apierrors.NewInternalError(fmt.Errorf("etcd is away")).Status())
	case q.Get("watch") == "":
		f.serveList(w, r, s, faults.gone)
	default:
		f.serveWatch(w, r, s)
	}
}

func sendStatus(w http.ResponseWriter, s metav1.Status) {
	s.Kind, s.APIVersion, s.Status = "Status", "v1", metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}

// encoding is how a client wants answers: the media type, and whether that is protobuf.
func encoding(r *http.Request) (mediaType string, proto bool) {
	if strings.Contains(r.Header.Get("Accept"), "protobuf") {
		return protobuf, true
	}
	return "application/json", false
}

func (f *fakeServer) encode(mediaType string, o runtime.Object) []byte {
	info, _ := runtime.SerializerInfoForMediaType(f.codecs.SupportedMediaTypes(), mediaType)
	var b bytes.Buffer
	versions := schema.GroupVersions{coreV1, discoveryV1, networkingV1, eventsV1}
	if err := f.codecs.EncoderForVersion(info.Serializer, versions).Encode(o.DeepCopyObject(), &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (f *fakeServer) serveList(w http.ResponseWriter, r *http.Request, s selector, gone float64) {
	f.count("list")
	q := r.URL.Query()
	token := q.Get("continue")
	version, _, _ := strings.Cut(token, "/")
	var objects []runtime.Object
	if token == "" {
		all, v := f.list(s)
		objects, version = all, strconv.Itoa(v)
	} else {
		f.mu.Lock()
		objects = f.pages[token]
		f.mu.Unlock()
		if f.chance("gone page", gone) {
			sendStatus(w, apierrors.NewResourceExpired("the continue token is too old").Status())
			return
		}
	}
	list := listOf(s.resource)
	about, _ := meta.ListAccessor(list)
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(objects) > fakePage {
		f.count("page")
		next := fmt.Sprintf("%s/%d/%s", version, len(objects)-fakePage, s.resource)
		f.mu.Lock()
		f.pages[next] = objects[fakePage:]
		f.mu.Unlock()
		about.SetContinue(next)
		objects = objects[:fakePage]
	}
	about.SetResourceVersion(version)
	if err := meta.SetList(list, objects); err != nil {
		panic(err)
	}
	mediaType, _ := encoding(r)
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(f.encode(mediaType, list))
}

// fakePage is how many objects a page has, whatever was asked for.
const fakePage = 3

func (f *fakeServer) serveWatch(w http.ResponseWriter, r *http.Request, s selector) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	streaming := q.Get("sendInitialEvents") == "true"
	f.mu.Lock()
	faults, tooOld, tooNew := f.faults, from != 0 && from < f.compacted, from > f.version
	f.mu.Unlock()
	switch {
	case streaming && f.chance("no stream", faults.noStreams):
		sendStatus(w, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil).Status())
		return
	case tooOld && f.chance("gone", 0.5):
		sendStatus(w, apierrors.NewResourceExpired("too old resource version").Status())
		return
	case tooNew:
		f.count("too new")
		err := apierrors.NewTimeoutError("Too large resource version", 0)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		sendStatus(w, err.Status())
		return
	}
	mediaType, proto := encoding(r)
	w.Header().Set("Content-Type", mediaType)
	if proto {
		f.count("protobuf")
		w.Header().Set("Content-Type", mediaType+";stream=watch")
	}
	out := &fakeStream{fakeServer: f, w: w, mediaType: mediaType, proto: proto, faults: faults, selector: s}
	if streaming || from == 0 {
		from = out.initial(streaming)
	}
	out.follow(r, from)
}

// fakeStream is one watch.
type fakeStream struct {
	*fakeServer
	selector
	w         http.ResponseWriter
	mediaType string
	proto     bool
	faults    faults
}

// initial sends all there is, and is the version it is of.
func (s *fakeStream) initial(streaming bool) int {
	objects, version := s.list(s.selector)
	for _, o := range objects {
		s.send(watch.Added, o)
	}
	if streaming {
		s.count("stream")
		s.bookmark(version, true)
	}
	return version
}

// follow sends what changes, until the client goes or something breaks.
func (s *fakeStream) follow(r *http.Request, from int) {
	for {
		s.mu.Lock()
		changed, down, tooOld, edits, version := s.changed, s.fakeServer.faults.down, from < s.compacted, s.history, s.version
		s.mu.Unlock()
		switch {
		case down:
			panic(http.ErrAbortHandler)
		case tooOld:
			s.count("gone event")
			status := apierrors.NewResourceExpired("too old resource version").Status()
			s.send(watch.Error, &status)
			return
		}
		for _, e := range edits {
			if e.version > from && e.resource == s.resource {
				s.change(e)
			}
		}
		from = version
		if s.chance("bookmark", s.faults.bookmark) {
			s.bookmark(from, false)
			s.bookmark(from, false)
		}
		if s.chance("end", s.faults.end) {
			return
		}
		s.w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// change sends a change as who sees only what it selects sees it.
func (s *fakeStream) change(e edit) {
	was, is := s.matches(e.from), s.matches(e.to)
	switch {
	case was && is:
		s.send(watch.Modified, e.to)
	case is:
		s.send(watch.Added, e.to)
	case was:
		gone := e.from.DeepCopyObject().(object)
		gone.SetResourceVersion(strconv.Itoa(e.version))
		s.send(watch.Deleted, gone)
	}
}

func (s *fakeStream) bookmark(version int, last bool) {
	o := listItem(s.resource)
	o.SetResourceVersion(strconv.Itoa(version))
	if last {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	s.send(watch.Bookmark, o)
}

// send writes one event, or the beginning of it.
func (s *fakeStream) send(t watch.EventType, o runtime.Object) {
	if s.chance("pause", s.faults.pause) {
		s.w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond)
	}
	frame := s.frame(metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: s.encode(s.mediaType, o)}})
	if s.chance("cut", s.faults.cut) {
		s.mu.Lock()
		n := s.rng.IntN(len(frame))
		s.mu.Unlock()
		_, _ = s.w.Write(frame[:n])
		s.w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = s.w.Write(frame)
}

func (s *fakeStream) frame(e metav1.WatchEvent) []byte {
	if !s.proto {
		frame, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		return append(frame, '\n')
	}
	body, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
