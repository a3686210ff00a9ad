package app

import (
	"sluice/internal/metrics"
	"sluice/internal/model"
	"sluice/internal/reconcile"
	"sluice/internal/relay/localhost"
)

// newLocalhost has the daemon's proxy serve node ports at loopback addresses, if the plan leaves them to it.
func (d *daemon) newLocalhost() *localhost.Server {
	return localhost.New(localhost.Config{
		Log: d.Log.Logger,
		Open: func() (localhost.Proxy, error) {
			proxy, _, err := d.relay.open(d.config().Userspace, direct)
			if err != nil {
				return nil, err
			}
			return proxy, nil
		},
		Tell: func(service model.Name, reason, note string) {
			d.source.tell(event{service: service, warning: true, reason: reason, action: "Listen", note: note})
		},
	})
}

// observer is told what the loop does.
type observer struct {
	*metrics.Metrics
	local *localhost.Server
}

// Applied tells who waits for rules to stand, too.
func (o observer) Applied(a reconcile.Applied) {
	o.Metrics.Applied(a)
	if a.Err == nil {
		o.local.Settled()
	}
}
