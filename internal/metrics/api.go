package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/status"
)

var (
	descConnected     = desc("sluice_api_connected", "1 if the API server is heard, 0 if it is not.")
	descKindSynced    = desc("sluice_api_kind_synced", "1 if all objects of a kind were listed once.", "kind")
	descKindConnected = desc("sluice_api_kind_connected", "1 if changes of a kind come as they happen, 0 if what is known stays as it was.", "kind")
	descKindSince     = desc("sluice_api_kind_connected_change_timestamp_seconds", "When a kind was last connected, or last lost.", "kind")
	descKindObjects   = desc("sluice_api_kind_objects", "Objects of a kind that are known.", "kind")
)

// collectAPI tells how the daemon stands with the API server. Kinds are few, and the daemon's choice.
func collectAPI(gauge func(*prometheus.Desc, float64, ...string), api *status.API) {
	if api == nil {
		return
	}
	gauge(descConnected, one(api.Connected))
	for _, k := range api.Kinds {
		gauge(descKindSynced, one(k.Synced), k.Kind)
		gauge(descKindConnected, one(k.Connected), k.Kind)
		gauge(descKindSince, seconds(k.Since), k.Kind)
		gauge(descKindObjects, float64(k.Objects), k.Kind)
	}
}
