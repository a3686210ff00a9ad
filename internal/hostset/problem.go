package hostset

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sluice/internal/kernel/sysctl"
)

// Problem is a setting that is not as asked.
type Problem struct {
	Setting Setting
	Have    int // means nothing if the setting could not be read
	Want    int
	Err     error // says the operation, the setting, and why in the kernel's words

	unread bool
}

// Waits reports whether the setting is not there because connection tracking is not loaded yet. The kernel loads it with
// the first rule that asks for it: apply again then.
func (p Problem) Waits() bool {
	return p.Setting != OOMScoreAdj && errors.Is(p.Err, fs.ErrNotExist)
}

// String says what failed, what that means, and what to do.
func (p Problem) String() string {
	return fmt.Sprintf("%v; %s; %s", p.Err, p.Meaning(), p.Help())
}

// Meaning says what follows from the problem.
func (p Problem) Meaning() string {
	switch {
	case p.Waits():
		return "connection tracking is not loaded yet"
	case p.unread:
		return fmt.Sprintf("whether it is %d, as asked for, is not known", p.Want)
	}
	switch p.Setting {
	case MaxConnections:
		return fmt.Sprintf("new connections are dropped while %d are tracked, where %d are asked for", p.Have, p.Want)
	case Buckets:
		return "finding one among many tracked connections takes longer"
	case TCPEstablished:
		return "silent TCP connections are forgotten after " + p.times()
	case TCPCloseWait:
		return "TCP connections that one side closed are forgotten after " + p.times()
	case UDP:
		return "UDP flows without an answer are forgotten after " + p.times()
	case UDPStream:
		return "silent UDP flows are forgotten after " + p.times()
	case BeLiberal:
		return "TCP packets out of window are dropped"
	default:
		return fmt.Sprintf("when memory runs out, the kernel ends Sluice %s than is asked for", sooner(p.Have, p.Want))
	}
}

// Help says what an operator can do.
func (p Problem) Help() string {
	refused := errors.Is(p.Err, sysctl.ErrReadOnly) || errors.Is(p.Err, fs.ErrPermission)
	switch {
	case p.Waits():
		return "it is set as soon as it can be"
	case p.Setting == OOMScoreAdj && p.unread:
		return "have /proc mounted where Sluice runs"
	case p.Setting == OOMScoreAdj && refused:
		return fmt.Sprintf("run Sluice with CAP_SYS_RESOURCE, or ask for what it is (oomScoreAdj: %d)", p.Have)
	case p.Setting == OOMScoreAdj:
		return fmt.Sprintf("ask for another value, or for what it is (oomScoreAdj: %d)", p.Have)
	case refused:
		return fmt.Sprintf("run Sluice privileged and in the host's network, or set it on the host (sysctl -w %s=%d), or have it left alone (%s)",
			p.Setting, p.Want, p.Setting.leaveAlone())
	default:
		return fmt.Sprintf("ask for another value, or have it left alone (%s)", p.Setting.leaveAlone())
	}
}

// leaveAlone is the line of the configuration with which a setting stays as it is.
func (s Setting) leaveAlone() string {
	switch s {
	case TCPEstablished:
		return "conntrack.tcpEstablishedTimeout: 0s"
	case TCPCloseWait:
		return "conntrack.tcpCloseWaitTimeout: 0s"
	case UDP:
		return "conntrack.udpTimeout: 0s"
	case UDPStream:
		return "conntrack.udpStreamTimeout: 0s"
	case BeLiberal:
		return "conntrack.tcpBeLiberal: false"
	default:
		return "conntrack.maxPerCore: 0"
	}
}

func sooner(have, want int) string {
	if have > want {
		return "sooner"
	}
	return "later"
}

func (p Problem) times() string {
	return fmt.Sprintf("%v, not %v", seconds(p.Have), seconds(p.Want))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
