package config

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// hiddenVersion is the one that showHiddenMetricsForVersion may name: the minor version before.
const hiddenVersion = "1.36"

// parts checks all that is not policy, and writes it into c.
func (v *Values) parts(c *Config) error {
	var errs [8]error
	c.Client, errs[0] = v.client()
	c.Serve, errs[1] = v.serve()
	c.Host, errs[2] = v.host()
	c.Features, errs[3] = v.features()
	c.Log, errs[4] = v.log(c.Features[gateJSONLog])
	c.IPVS, errs[5] = v.ipvs()
	c.Userspace, errs[6] = v.userspace()
	if is := v.as.ConfigSyncPeriod.Duration; is <= 0 {
		errs[7] = v.wrong("configSyncPeriod", is, "want more than 0")
	}
	return errors.Join(errs[:]...)
}

// faults gathers what is wrong; nil is nothing.
type faults []error

func (f *faults) add(err error) { *f = append(*f, err) }

func (f faults) join() error { return errors.Join(f...) }

func (v *Values) client() (Client, error) {
	is := &v.as.ClientConnection
	c := Client{
		Kubeconfig: is.Kubeconfig, Master: v.master, ContentType: is.ContentType, AcceptContentTypes: is.AcceptContentTypes,
		QPS: is.QPS, Burst: int(is.Burst),
	}
	if math.IsNaN(float64(c.QPS)) || math.IsInf(float64(c.QPS), 0) {
		return c, v.wrong("clientConnection.qps", c.QPS, "want a number")
	}
	return c, v.notNegative("clientConnection.burst", is.Burst)
}

func (v *Values) serve() (s Serve, err error) {
	var healthErr, metricsErr, versionErr error
	s.HardFail, s.Profiling = v.as.BindAddressHardFail, v.as.EnableProfiling
	s.Health, healthErr = v.listenAt("healthzBindAddress", v.as.HealthzBindAddress)
	s.Metrics, metricsErr = v.listenAt("metricsBindAddress", v.as.MetricsBindAddress)
	if is := v.as.ShowHiddenMetricsForVersion; is != "" && is != hiddenVersion {
		versionErr = v.wrong("showHiddenMetricsForVersion", strconv.Quote(is), "want %s, the version before, or nothing", hiddenVersion)
	}
	return s, errors.Join(healthErr, metricsErr, versionErr)
}

func (v *Values) host() (Host, error) {
	is, oom := &v.as.Conntrack, *v.as.OOMScoreAdj
	h := Host{OOMScoreAdj: int(oom), Conntrack: Conntrack{
		MaxPerCore: int(*is.MaxPerCore), Min: int(*is.Min),
		TCPEstablished: is.TCPEstablishedTimeout.Duration, TCPCloseWait: is.TCPCloseWaitTimeout.Duration,
		UDP: is.UDPTimeout.Duration, UDPStream: is.UDPStreamTimeout.Duration, BeLiberal: is.TCPBeLiberal,
	}}
	var oomErr error
	if oom < -1000 || oom > 1000 {
		oomErr = v.wrong("oomScoreAdj", oom, "want -1000 to 1000")
	}
	return h, errors.Join(
		oomErr,
		v.notNegative("conntrack.maxPerCore", *is.MaxPerCore), v.notNegative("conntrack.min", *is.Min),
		v.notBelow0("conntrack.tcpEstablishedTimeout", h.Conntrack.TCPEstablished),
		v.notBelow0("conntrack.tcpCloseWaitTimeout", h.Conntrack.TCPCloseWait),
		v.notBelow0("conntrack.udpTimeout", h.Conntrack.UDP),
		v.notBelow0("conntrack.udpStreamTimeout", h.Conntrack.UDPStream),
	)
}

func (v *Values) log(json bool) (Log, error) {
	is := &v.as.Logging
	l := Log{Format: is.Format, Verbosity: int(is.Verbosity)}
	var errs []error
	switch {
	case is.Format != FormatText && is.Format != FormatJSON:
		errs = append(errs, v.wrong("logging.format", strconv.Quote(is.Format), "want text or json"))
	case is.Format == FormatJSON && !json:
		errs = append(errs, v.wrong("logging.format", is.Format, "the feature gate %s is off", gateJSONLog))
	}
	if is.Verbosity > math.MaxInt32 {
		errs = append(errs, v.wrong("logging.verbosity", is.Verbosity, "want %d at most", math.MaxInt32))
	}
	if flush := is.FlushFrequency.Duration.Duration; flush <= 0 {
		errs = append(errs, v.wrong("logging.flushFrequency", flush, "want more than 0"))
	}
	return l, errors.Join(errs...)
}

func (v *Values) notNegative(path string, is int32) error {
	if is < 0 {
		return v.wrong(path, is, "want 0 or more")
	}
	return nil
}

func (v *Values) notBelow0(path string, is time.Duration) error {
	if is < 0 {
		return v.wrong(path, is, "want 0 or more")
	}
	return nil
}
