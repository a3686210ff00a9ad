package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"time"
)

// A client of the daemon asks one short question. Each of these limits leaves it plenty of time and room, and none
// leaves a client the means to keep the daemon busy.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10 // bytes
	maxClients    = 256      // connections at one address; those that are silent make room for further ones
)

// OneAnswer is next with the end of each connection at its first answer. It is for ports that anybody reaches: clients
// that stay, and ask nothing, take none of the places at it. Who would keep a connection is told with the answer, and
// so never asks into one that is just being closed, as it may when its server only loses patience.
func OneAnswer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
	})
}

// Serve answers with handler at socket until the socket or the returned server is closed. The channel yields
// why it ended, which is http.ErrServerClosed after a call of Close or Shutdown, and is closed then.
func Serve(socket net.Listener, handler http.Handler, log *slog.Logger) (*http.Server, <-chan error) {
	server := &http.Server{
		Handler: marked(handler), ConnContext: remember,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- server.Serve(newCrowd(socket, log))
	}()
	return server, ended
}
