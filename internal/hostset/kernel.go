package hostset

import (
	"runtime"
	"strconv"

	"sluice/internal/kernel/cpu"
	"sluice/internal/kernel/oom"
	"sluice/internal/kernel/sysctl"
)

// kernel is where settings are read and written.
type kernel struct {
	cpus  func() (int, error)
	read  func(Setting) (int, error)
	write func(Setting, int) error
}

// here is the kernel that this process runs on.
var here = kernel{cpus: cpu.Online, read: read, write: write}

func (k kernel) facts() Facts {
	f := Facts{Values: map[Setting]Reading{}}
	n, err := k.cpus()
	if err != nil {
		n = runtime.NumCPU() // those that this process may use: perhaps fewer, and a limit is only ever raised
	}
	f.CPUs = n
	for _, s := range []Setting{MaxConnections, Buckets, TCPEstablished, TCPCloseWait, UDP, UDPStream, BeLiberal, OOMScoreAdj} {
		value, err := k.read(s)
		f.Values[s] = Reading{Value: value, Err: err}
	}
	return f
}

func read(s Setting) (int, error) {
	if s == OOMScoreAdj {
		return oom.Score()
	}
	return sysctl.GetInt(string(s))
}

func write(s Setting, value int) error {
	if s == OOMScoreAdj {
		return oom.SetScore(value)
	}
	_, err := sysctl.Set(string(s), strconv.Itoa(value))
	return err
}
