package udp

import "time"

// Linger is how long answers are awaited once nothing of the clients is read any more.
const Linger = 5 * time.Second

func (e *Engine) keepSweeping() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.sweep()
		case <-e.done:
			return
		}
	}
}

// sweep ends the sessions that have been silent for too long.
func (e *Engine) sweep() {
	now := e.config.Now()
	for _, l := range e.all(false) {
		for _, s := range l.choose(func(s *session) bool { return s.expired(now) }) {
			s.end(Idle)
		}
	}
}

func (s *session) expired(now time.Time) bool {
	limit := s.listener.engine.config.Idle
	if s.stream.Load() {
		limit = s.listener.engine.config.StreamIdle
	}
	if s.listener.stopped.Load() {
		limit = min(limit, Linger)
	}
	return now.UnixNano()-s.last.Load() >= int64(limit)
}
