package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// footprint is what a daemon takes.
type footprint struct{ memory, peak, files, goroutines int }

// look waits until the daemon does nothing more.
func (w *way) look() footprint {
	w.Helper()
	w.daemon.rest()
	files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(w.daemon.Pid()), "fd"))
	if err != nil {
		w.Fatal(err)
	}
	goroutines := w.metric("go_goroutines")
	status := w.daemon.proc("status")
	return footprint{memory(w.B, status, "VmRSS"), memory(w.B, status, "VmHWM"), len(files), goroutines}
}

// row has what each of n takes, if there are any.
func (f footprint) row(what string, before footprint, n int) []string {
	each := ""
	if n > 0 {
		each = fmt.Sprintf("%.1f", float64(f.memory-before.memory)/1024/float64(n))
	}
	return []string{what, mebibytes(f.memory), each, mebibytes(f.peak), strconv.Itoa(f.files), strconv.Itoa(f.goroutines)}
}

// metric is the value of one of the daemon's.
func (w *way) metric(name string) int {
	w.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(_ context.Context, network, addr string) (c net.Conn, err error) {
			err = w.lab.Node().Do(func() error { c, err = net.Dial(network, addr); return err })
			return c, err
		},
	}}
	answer, err := client.Get("http://127.0.0.1:10249/metrics")
	if err != nil {
		w.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if err := errors.Join(err, answer.Body.Close()); err != nil || m == nil {
		w.Fatalf("metric %s: %v", name, err)
	}
	value, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		w.Fatal(err)
	}
	return int(value)
}
