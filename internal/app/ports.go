package app

import (
	"runtime"

	"sluice/internal/config"
	"sluice/internal/health"
	"sluice/internal/httpd"
	"sluice/internal/model"
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
			d.board.read(map[any][]string{portTopic(name): reasons(err)})
			if err != nil {
				d.source.tell(event{warning: true, reason: reason, action: startAction, note: err.Error()})
			}
		}
		return httpd.New(c)
	}
	return ports{
		health:  server("health", serve.Health, "FailedToStartProxierHealthcheck", httpd.Config{Handler: httpd.OneAnswer(answers.Handler())}),
		metrics: server("metrics", serve.Metrics, "FailedToStartMetricServer", httpd.Config{Handler: httpd.MetricsMux(d.metricsMux())}),
	}
}

// portTopic is what problems of one of the daemon's ports go by.
type portTopic string

// checksTopic is what problems of health check node ports go by.
const checksTopic = portTopic("health check node ports")

// newChecks are the health check node ports. What is wrong with them is told as kube-proxy tells it, and in the status.
func (d *daemon) newChecks(healthy func() bool) *health.Server {
	s := health.New(healthy, d.Log.Logger)
	s.Tell = func(service model.Name, reason, note string) {
		d.source.tell(event{service: service, warning: true, reason: reason, action: "Listen", note: note})
	}
	s.Failing = func(texts []string) { d.board.read(map[any][]string{checksTopic: texts}) }
	return s
}

// reasons are the text of an error, if it is one.
func reasons(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
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
