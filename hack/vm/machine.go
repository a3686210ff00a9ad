package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sluice/hack/vm/guest"
)

// machine is a virtual machine of qemu. It has no disk and no network: all that it needs is in its initramfs. It is
// emulated without help of the processor (tcg), so that it runs wherever qemu does, also within another machine.
type machine struct {
	kernel, initramfs string
	console           string // the file that takes what the kernel says
	memory            int    // MiB
}

var errNoQemu = errors.New("qemu-system-x86_64 is not there; run: apt-get install --no-install-recommends qemu-system-x86")

// run starts the machine and calls heard for each event, until it powers off. A kernel that panics does that too, and
// so does one that finds itself stuck.
func (m machine) run(ctx context.Context, heard func(guest.Event)) error {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", m.arguments()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // main holds its thread
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); errors.Is(err, exec.ErrNotFound) {
		return errNoQemu
	} else if err != nil {
		return err
	}
	decoded := decode(out, heard)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("qemu: %w: %s", errors.Join(err, context.Cause(ctx)), complaint.String())
	}
	return decoded
}

func (m machine) arguments() []string {
	return []string{
		"-accel", "tcg,thread=multi", "-smp", "2", "-m", strconv.Itoa(m.memory), "-cpu", "max",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", m.kernel, "-initrd", m.initramfs,
		"-append", bootOptions,
		"-serial", "file:" + m.console,
		"-device", "virtio-rng-pci",
		"-device", "virtio-serial-pci",
		"-chardev", "file,id=events,path=/dev/stdout", "-device", "virtserialport,chardev=events,name=" + guest.Port,
	}
}

// bootOptions have the kernel end the machine when something is wrong with it. A processor that does nothing for a minute
// is wrong; for less, the host may just be busy. So may it be when the kernel looks whether the timer ticks.
const bootOptions = "console=ttyS0 panic=-1 oops=panic softlockup_panic=1 watchdog_thresh=30 hung_task_panic=1 mitigations=off " +
	"no_timer_check"

func decode(r io.Reader, heard func(guest.Event)) error {
	for d := json.NewDecoder(r); ; {
		var e guest.Event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, r) // so that qemu can end
			return fmt.Errorf("read what the machine reports: %w", err)
		}
		heard(e)
	}
}

// lastWords is the end of what the kernel said.
func (m machine) lastWords() string {
	const most = 60
	text, err := os.ReadFile(m.console)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// newMachine puts together what all runs share and what this one adds.
func newMachine(b base, t tree, dir string, memory int) (m machine, err error) {
	m = machine{kernel: b.kernel(), initramfs: filepath.Join(dir, "initramfs"), console: filepath.Join(dir, "console"), memory: memory}
	out, err := os.Create(m.initramfs)
	if err != nil {
		return m, err
	}
	shared, err := os.Open(b.initramfs())
	if err != nil {
		return m, errors.Join(err, out.Close())
	}
	_, err = io.Copy(out, shared)
	return m, errors.Join(err, shared.Close(), t.write(out), out.Close())
}
