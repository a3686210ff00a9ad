package metrics

import "time"

const (
	// readEvery is how old what a scrape reads of the kernel may be.
	readEvery = 5 * time.Second
	// readShare is how many times as long as a reading takes nothing is read again: it takes a hundredth of a processor
	// at most, however many Services there are and however many scrape.
	readShare = 100
	// readAtLeast is how old it may become for that: much of the time may have been spent waiting.
	readAtLeast = time.Minute
)

// pace is when to read the kernel again.
type pace struct{ next time.Time }

// read has do read the kernel if it is time to. What could not be read takes no share.
func (p *pace) read(now time.Time, do func() error) {
	if now.Before(p.next) {
		return
	}
	start := time.Now()
	err := do()
	took := time.Since(start)
	rest := min(max(readEvery, readShare*took), readAtLeast)
	if err != nil {
		rest = readEvery
	}
	p.next = now.Add(took + rest)
}
