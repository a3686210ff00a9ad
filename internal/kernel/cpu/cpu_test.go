package cpu

import "testing"

func TestCount(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8": 5, "0,2,4-7,64-127": 70} {
		if got, err := count(list); got != want || err != nil {
			t.Errorf("%q: got %d, %v; want %d", list, got, err, want)
		}
	}
	for _, list := range []string{"", "a", "0-", "-3", "3-1", "0,,2", "0-99999999"} {
		if got, err := count(list); err == nil {
			t.Errorf("%q: got %d and no error", list, got)
		}
	}
}

// A process may use fewer processors than there are, never more.
func TestOnline(t *testing.T) {
	if n, err := Online(); err != nil || n < 1 {
		t.Errorf("got %d, %v", n, err)
	}
}
