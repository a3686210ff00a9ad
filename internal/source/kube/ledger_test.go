package kube

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"sluice/internal/model"
)

// A receiver that takes nothing for long costs no more memory than there are objects, whatever changes.
func TestTriggersAreBounded(t *testing.T) {
	l := newLedger(kinds("node-a"), newLink(slog.New(slog.DiscardHandler), "https://192.0.2.1"))
	slices := l.stores[1]
	for i := range maxTriggers + 100 {
		name := model.Name{Namespace: "default", Name: "web"}
		slice := &model.Slice{Name: name, Service: model.Name{Namespace: "default", Name: strconv.Itoa(i)}}
		if err := slices.Update(&item{name: name, value: slice, trigger: l.start.Add(time.Duration(i+1) * time.Millisecond)}); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := l.take()
	if len(c.Triggers) != maxTriggers || len(c.Delta.Slices) != 1 {
		t.Errorf("%d triggers and %d slices, want %d and 1", len(c.Triggers), len(c.Delta.Slices), maxTriggers)
	}
}
