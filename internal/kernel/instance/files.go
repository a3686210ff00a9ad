package instance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// filesAtOnce is how many files one message carries. The kernel takes 253 (SCM_MAX_FD).
const filesAtOnce = 250

// maxNote bounds what a note may have, in bytes, so that a broken sender takes no memory.
const maxNote = 64 << 20

// SendFiles gives open files to the process at the other end, with a note of what they are. The files stay open here,
// too.
func SendFiles(conn *net.UnixConn, note []byte, files []*os.File) error {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(note))), uint32(len(files)))
	if _, err := conn.Write(append(head, note...)); err != nil {
		return fmt.Errorf("hand over files: %w", err)
	}
	for len(files) > 0 {
		some := files[:min(len(files), filesAtOnce)]
		if err := sendSome(conn, some); err != nil {
			return fmt.Errorf("hand over files: %w", err)
		}
		files = files[len(some):]
	}
	return nil
}

// sendSome sends files with one byte, since a message without any says nothing.
func sendSome(conn *net.UnixConn, files []*os.File) error {
	raws := make([]int, len(files))
	for i, f := range files {
		raw, err := f.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { raws[i] = int(fd) }) // Fd would make a socket that is still in use here a blocking one
		}
		if err != nil {
			return err
		}
	}
	_, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(raws...), nil)
	runtime.KeepAlive(files)
	return err
}

// ReceiveFiles takes what [SendFiles] gives. On an error the files that came are closed.
func ReceiveFiles(conn *net.UnixConn) (note []byte, files []*os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("take files over: %w", errors.Join(err, closeAll(files)))
			files = nil
		}
	}()
	var head [8]byte
	if _, err = io.ReadFull(conn, head[:]); err != nil {
		return nil, nil, err
	}
	size, count := binary.BigEndian.Uint32(head[:4]), int(binary.BigEndian.Uint32(head[4:]))
	if size > maxNote {
		return nil, nil, fmt.Errorf("a note of %d bytes", size)
	}
	note = make([]byte, size)
	if _, err = io.ReadFull(conn, note); err != nil {
		return nil, nil, err
	}
	for len(files) < count {
		some, err := receiveSome(conn)
		files = append(files, some...)
		if err != nil {
			return nil, files, err
		}
	}
	return note, files, nil
}

// receiveSome receives the files of one message.
func receiveSome(conn *net.UnixConn) (files []*os.File, err error) {
	control := make([]byte, unix.CmsgSpace(4*filesAtOnce))
	n, size, _, _, err := conn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil {
		return nil, err
	}
	for i := range messages {
		raws, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, raw := range raws {
			files = append(files, os.NewFile(uintptr(raw), "inherited socket"))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("a message without files")
	}
	return files, nil
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
