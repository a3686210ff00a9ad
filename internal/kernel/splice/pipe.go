package splice

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how many bytes a pipe should hold. The default of 64 KiB costs a busy connection more system calls than it
// needs; what is above 256 KiB gains nothing.
const pipeSize = 256 << 10

// Pipe holds bytes on their way between two sockets. It is used by one goroutine at a time. It takes two open files.
type Pipe struct {
	read, write int
	held        int
}

// NewPipe makes an empty pipe.
func NewPipe() (*Pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	// An ordinary user may be out of pages for pipes (fs.pipe-user-pages-soft); a smaller pipe works too.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return &Pipe{read: fds[0], write: fds[1]}, nil
}

// Held is how many bytes are in the pipe.
func (p *Pipe) Held() int { return p.held }

// Fill moves what socket fd has received into the pipe, which is empty, and returns how much that was: 0 is the end of
// the stream. EAGAIN means that fd has nothing yet. Before an urgent byte it is either of them; see [AtMark].
func (p *Pipe) Fill(fd uintptr) (int, error) {
	n, err := move(int(fd), p.write)
	p.held += n
	return n, err
}

// Drain moves what is in the pipe to socket fd, and returns how much fd took. EAGAIN means that fd takes nothing now.
func (p *Pipe) Drain(fd uintptr) (int, error) {
	n, err := move(p.read, int(fd))
	p.held -= n
	return n, err
}

// Close lets go of the pipe and what is in it.
func (p *Pipe) Close() {
	_ = unix.Close(p.read)
	_ = unix.Close(p.write)
}

func move(from, to int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, pipeSize, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err == unix.EINTR {
			continue
		}
		return max(0, int(n)), told("splice", err)
	}
}

// told names the call that failed. EAGAIN, which is no failure and comes often, stays as it is: a name would cost memory.
func told(call string, err error) error {
	if err == unix.EAGAIN {
		return err
	}
	return os.NewSyscallError(call, err)
}
