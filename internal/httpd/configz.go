package httpd

import (
	"encoding/json"
	"net/http"
)

// configGroup is the API group of kube-proxy's configuration.
const configGroup = "kubeproxy.config.k8s.io"

// configz answers with the configuration in force.
func (o *MuxOptions) configz(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(map[string]any{configGroup: o.Config()})
	if err != nil {
		http.Error(w, "error marshaling json: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) // the client may have left
}
