package flow

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/plan"
)

// meeting is a Way that hears from lost packets only when all of them are on their way.
type meeting struct {
	lost sync.WaitGroup

	mu    sync.Mutex // guards asked
	asked []string
}

func (*meeting) Name() string                          { return "meeting" }
func (*meeting) Follow(*plan.Plan, plan.Changes) error { return nil }
func (*meeting) mayBeside(f Flow) bool                 { return f.Want.Action == plan.Drop }

func (m *meeting) Ask(f Flow) (Outcome, error) {
	if m.mayBeside(f) {
		m.lost.Done()
		m.lost.Wait()
		return Outcome{}, errors.New("found")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, f.Packet.To.String())
	return f.Want, nil
}

// Lost packets are waited for together, all others one after the other, and every error is told, in the flows' order.
func TestCheckAll(t *testing.T) {
	flows, err := ParseAll(`
		outside 203.0.113.7 -> 192.0.2.1:1/TCP: drop
		outside 203.0.113.7 -> 192.0.2.1:2/TCP: reject
		outside 203.0.113.7 -> 192.0.2.1:3/TCP: drop
		outside 203.0.113.7 -> 192.0.2.1:4/TCP: unhandled
	`)
	if err != nil {
		t.Fatal(err)
	}
	m := &meeting{}
	m.lost.Add(2)
	var wrong []string
	for _, err := range CheckAll(m, flows) {
		wrong = append(wrong, err.Error())
	}
	if diff := cmp.Diff([]string{flows[0].String() + ": found", flows[2].String() + ": found"}, wrong); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"192.0.2.1:2", "192.0.2.1:4"}, m.asked); diff != "" {
		t.Errorf("asked in turn (-want +got):\n%s", diff)
	}
}
