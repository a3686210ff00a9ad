package await

import (
	"errors"
	"testing"
	"time"
)

// Limit is how long anything may take to come true; a test that passes never waits for it.
const Limit = 60 * time.Second

// Until calls f until its error is nil, with a pause between two calls. After the Limit it ends the test with the last error.
func Until(t testing.TB, pause time.Duration, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(Limit); time.Now().Before(end); time.Sleep(pause) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("after %s: %v", Limit, err)
}

// True is Until for something that is so or not; what says it in words.
func True(t testing.TB, pause time.Duration, what string, is func() bool) {
	t.Helper()
	Until(t, pause, func() error {
		if !is() {
			return errors.New("still not: " + what)
		}
		return nil
	})
}
