package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"sluice/internal/testkit/crowd"
)

// footprint is what a daemon takes.
type footprint struct{ memory, peak, files, goroutines int }

// look waits until the daemon does nothing more.
func (w *way) look() footprint {
	w.Helper()
	w.daemon.rest()
	f := footprint{goroutines: w.metric("go_goroutines")}
	files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(w.daemon.Pid()), "fd"))
	if err != nil {
		w.Fatal(err)
	}
	f.files = len(files)
	status := w.daemon.proc("status")
	f.memory, f.peak = memory(w.B, status, "VmRSS"), memory(w.B, status, "VmHWM")
	return f
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

// open is how many connections of the node to the endpoint there are, over tcp or udp.
func (w *way) open(network string) int {
	w.Helper()
	ip := wayEndpoint.As4()
	to := fmt.Sprintf(" %08X:%04X 01 ", binary.NativeEndian.Uint32(ip[:]), crowd.TargetPort) // established
	return strings.Count(w.daemon.proc("net/"+network), to)
}
