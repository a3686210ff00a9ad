package httpd

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
)

// maxLevel is the room for a verbosity, in bytes.
const maxLevel = 64

// flagsIndex lists what may be set below /debug/flags.
const flagsIndex = `<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
`

// debug is the handler of a path below /debug, or nil. The program's arguments are not among the
// profiles. Package pprof itself gives a profile more time than the server gives other answers.
func (o *MuxOptions) debug(path string) http.Handler {
	switch path {
	case "/debug/pprof":
		return http.RedirectHandler("/debug/pprof/", http.StatusFound)
	case "/debug/pprof/profile":
		return http.HandlerFunc(pprof.Profile)
	case "/debug/pprof/symbol":
		return http.HandlerFunc(pprof.Symbol)
	case "/debug/pprof/trace":
		return http.HandlerFunc(pprof.Trace)
	case "/debug/flags/v":
		return http.HandlerFunc(o.verbosity)
	}
	switch {
	case strings.HasPrefix(path, "/debug/pprof/"):
		return http.HandlerFunc(pprof.Index)
	case path == "/debug/flags", strings.HasPrefix(path, "/debug/flags/"):
		return http.HandlerFunc(index)
	}
	return nil
}

func index(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, flagsIndex) // the client may have left
}

// verbosity sets the verbosity of logs to the number that is put.
func (o *MuxOptions) verbosity(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		say(w, http.StatusNotAcceptable, "unsupported http method")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevel))
	if err != nil {
		say(w, http.StatusBadRequest, "error reading request body: "+err.Error())
		return
	}
	if err := o.setVerbosity(string(body)); err != nil {
		say(w, http.StatusBadRequest, err.Error())
		return
	}
	say(w, http.StatusOK, "successfully set klog.logging.verbosity to "+string(body))
}

// setVerbosity reads a number twice, because kube-proxy does and each reading has its own words for a failure.
func (o *MuxOptions) setVerbosity(text string) error {
	if _, err := strconv.ParseUint(text, 10, 32); err != nil {
		return err
	}
	level, err := strconv.ParseInt(text, 10, 32)
	if err == nil {
		err = o.Verbosity(int32(level))
	}
	if err != nil {
		return fmt.Errorf("failed set klog.logging.verbosity %s: %w", text, err)
	}
	return nil
}

// say answers with one line.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // the client may have left
}
