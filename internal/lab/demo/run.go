package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/internal/kernel/netns"
)

// Options are what the reader may choose.
type Options struct {
	// Mode is how the daemon does its work: "nftables", "iptables", "ipvs" or "userspace". If it is empty, Choose says
	// what this kernel can do; the last two do it with the help of what Choose says.
	Mode   string
	Choose func(context.Context) (mode string)
	// Try tells why the daemon cannot start in a mode here; nil: nobody knows before it does.
	Try func(ctx context.Context, mode string) error
	// Keep leaves everything running after the story, until a signal ends it.
	Keep  bool
	Color bool
	Out   io.Writer
	// Self is the path of this program, which also is the daemon; if empty, the running one's.
	Self string
}

// ErrFailed occurs when the story was told to its end and a check in it did not hold. The story says which.
var ErrFailed = errors.New("not everything in the demo was as it should be")

// limit is how long the story may take, in case something hangs.
const limit = 5 * time.Minute

// Run tells the story. It runs this program again, with the same arguments, in namespaces of its own, and there Run is
// called once more and does the work; so the caller does nothing before it that must not happen twice. The status is
// the exit status for the program; where it is not 0 and the error is nil, the reason has been told.
func Run(ctx context.Context, o Options) (status int, err error) {
	if !netns.Isolated() {
		return netns.Isolate(os.Args[1:])
	}
	if err := netns.Settle(); err != nil {
		return 1, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := tell(ctx, o); err != nil {
		return 1, err
	}
	return 0, nil
}

func tell(ctx context.Context, o Options) (err error) {
	if o.Self == "" {
		if o.Self, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	s, err := newStory(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.tell(bounded); err != nil {
		return err
	}
	if o.Keep {
		s.waitWithDoorsOpen(ctx)
	}
	if s.failed > 0 {
		return fmt.Errorf("%w: %d of %d checks failed", ErrFailed, s.failed, s.checks)
	}
	return nil
}
