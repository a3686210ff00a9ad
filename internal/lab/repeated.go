package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Repeated is how often connections from this machine have sent their first packet again, because it, or the answer, was
// lost on its way.
func (h *Host) Repeated() (n int, err error) {
	err = h.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/netstat")
		if err != nil {
			return err
		}
		n, err = counter(string(text), "TcpExt:", "TCPSynRetrans")
		return err
	})
	return n, err
}

// counter finds a number in pairs of lines, of names and of numbers, that begin with the same word.
func counter(text, group, name string) (int, error) {
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group {
			continue
		}
		for i, n := range names {
			if n == name && i < len(words) {
				return strconv.Atoi(words[i])
			}
		}
		names = words
	}
	return 0, fmt.Errorf("no %s %s in\n%s", group, name, text)
}
