package health

import (
	"encoding/json"
	"net/http"
	"strconv"

	"sluice/internal/model"
)

// answer is what there is to say of a Service.
type answer struct {
	service model.Name
	ready   int // ready endpoints on this node
}

// body is the answer as kube-proxy writes it.
type body struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      int  `json:"localEndpoints"`
	ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
}

// handler answers every path alike.
func (s *Server) handler(l *listener) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		a := l.answer
		s.mu.Unlock()
		a.write(w, s.healthy())
	})
}

func (a answer) write(w http.ResponseWriter, healthy bool) {
	b := body{LocalEndpoints: a.ready, ServiceProxyHealthy: healthy}
	b.Service.Namespace, b.Service.Name = a.service.Namespace, a.service.Name
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(a.ready))
	status := http.StatusServiceUnavailable
	if a.ready != 0 && healthy {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have left
}
