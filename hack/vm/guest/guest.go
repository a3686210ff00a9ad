// Package guest is what the machine of hack/vm and its host tell each other: the host puts a [Config] into the initramfs,
// and the machine answers with [Event] values, a line of JSON each, over the serial port named [Port].
package guest

// ConfigFile is where the machine finds its [Config].
const ConfigFile = "/vm.json"

// Port is the name of the virtio serial port that carries events.
const Port = "events"

// Config is what the machine does before it powers off.
type Config struct {
	Modules []string // kernel modules to load first; others load as the kernel asks for them
	Without []string // kernel modules that there are not
	Env     []string // KEY=value
	Runs    []Run    // one after the other
}

// Run is a program with its working folder.
type Run struct {
	Dir  string
	Args []string // the program itself is the first
}

// Event is news of a run: its beginning, output, or its end.
type Event struct {
	Run    int
	Output []byte `json:",omitempty"` // of standard output and standard error, in the order that they were written in
	Exit   *int   `json:",omitempty"` // the exit status, -1 where a signal ended it; nothing follows of this run
}
