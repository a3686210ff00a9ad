package udp

import (
	"testing"

	"sluice/internal/model"
	"sluice/internal/relay/count"
)

// What is counted of a Listener is counted of all, also when it is closed.
func TestTotalsOutliveListeners(t *testing.T) {
	total := count.New(nil)
	e := newEngine(t, Config{Total: total})
	for range 2 {
		l := listen(t, e, "127.0.0.1", serve(t, "a", "127.0.0.1").addr())
		client := dial(t, l.Addr())
		expect(t, client, "a?")
		l.target.Picker.Set(nil, model.BalanceDefault, 0)
		l.Changed(Settings{})
		if _, err := client.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is dropped", func() bool { return l.Stats().Dropped[Refused] == 1 })
		eventually(t, "its session has ended", func() bool { return l.Stats().Ended[NotOpened] == 1 })
		l.Close()
	}
	want := Stats{In: 2, Out: 2}
	want.Dropped[Refused], want.Ended[EndpointGone], want.Ended[NotOpened] = 2, 2, 2
	if got := e.Stats(); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if c := total.Counts(); c.Accepted != 4 || c.Open != 0 || c.Refused[count.NoEndpoint] != 2 || c.Ended != 2 || c.In != 2 || c.Out != 4 {
		t.Errorf("counted %+v in all, want 4 sessions, of which 2 were refused and 2 have ended", c)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range Drops {
		seen[d.String()] = true
	}
	for e := range Endings {
		seen[e.String()] = true
	}
	if want := int(Drops) + int(Endings); len(seen) != want {
		t.Errorf("%d names for %d reasons: %v", len(seen), want, seen)
	}
}
