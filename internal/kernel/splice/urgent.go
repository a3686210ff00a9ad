package splice

import (
	"os"

	"golang.org/x/sys/unix"
)

// siocAtMark is SIOCATMARK of all architectures that Go has for Linux but MIPS.
const siocAtMark = 0x8905

// KeepUrgent has socket fd, and what it accepts, keep urgent bytes (MSG_OOB) in their place among the others. Else the kernel
// would drop one that nobody has asked for when the next one comes.
func KeepUrgent(fd uintptr) error {
	return os.NewSyscallError("setsockopt SO_OOBINLINE", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1))
}

// AtMark reports whether the next byte of socket fd, which may not have come yet, is urgent. [Pipe.Fill] stops before it, as
// if there were nothing.
func AtMark(fd uintptr) bool {
	at, err := unix.IoctlGetUint32(int(fd), siocAtMark)
	return err == nil && at != 0
}

// SendUrgent is [Send] of one byte that is urgent.
func SendUrgent(fd uintptr, b byte) (int, error) {
	return send(fd, []byte{b}, unix.MSG_OOB)
}

// Ready reports whether socket fd has something to read: bytes, urgent or not, its end, or an error.
func Ready(fd uintptr) bool {
	ask := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(ask[:], 0)
		if err != unix.EINTR {
			return n != 0 // an error of poll is one of fd, which an attempt to read will tell
		}
	}
}
