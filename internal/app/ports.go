package app

import (
	"runtime"

	"sluice/internal/config"
	"sluice/internal/health"
	"sluice/internal/httpd"
)

// ports are where the daemon answers.
type ports struct {
	health, metrics *httpd.Server
}

func (d *daemon) newPorts(answers *health.Proxy) ports {
	serve := d.Config.Serve
	server := func(name, address, reason string, c httpd.Config) *httpd.Server {
		c.Name, c.Address, c.HardFail, c.Log = name, address, serve.HardFail, d.Log.Logger
		c.Failed = func(err error) {
			d.source.tell(event{warning: true, reason: reason, action: startAction, note: err.Error()})
		}
		return httpd.New(c)
	}
	return ports{
		health:  server("health", serve.Health, "FailedToStartProxierHealthcheck", httpd.Config{Handler: httpd.OneAnswer(answers.Handler())}),
		metrics: server("metrics", serve.Metrics, "FailedToStartMetricServer", httpd.Config{Handler: httpd.MetricsMux(d.metricsMux())}),
	}
}

// startAction is what kube-proxy was at when it has news of its start.
const startAction = "StartKubeProxy"

// follow has the ports at the addresses of another configuration.
func (p ports) follow(c config.Serve) {
	p.health.Move(c.Health, c.HardFail)
	p.metrics.Move(c.Metrics, c.HardFail)
}

func (d *daemon) metricsMux() httpd.MuxOptions {
	version := readVersion()
	return httpd.MuxOptions{
		Component: component,
		Metrics:   d.metrics.Handler(),
		SLIs:      d.metrics.SLIs(),
		Pinged:    d.metrics.Pinged,
		ProxyMode: func() string { return d.config().Mode },
		Config:    func() any { return d.config().KubeProxy() },
		Flags:     d.Flags,
		Status: func() httpd.Status {
			return httpd.Status{Started: d.board.since, GoVersion: runtime.Version(), BinaryVersion: version.Version}
		},
		Profiling: func() bool { return d.config().Serve.Profiling },
		Verbosity: func(level int32) error {
			d.Log.follow(config.Log{Verbosity: int(level)})
			return nil
		},
	}
}
